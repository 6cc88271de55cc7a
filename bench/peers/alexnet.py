"""AlexNet on one batch of random images [3, 224, 224], plain SGD, in other
systems; 61,100,840 parameters, no dropout.  The batch stays in memory, so
nothing but the step itself is measured.

peers: tf2        tf.function
       tf2_jit    tf.function compiled by XLA
       torch      eager
       torch_cl   eager, channels last
       torch_bf16 the same with torch.autocast to bfloat16
"""
import contextlib
import typing

import common
import numpy as np

LEARNING_RATE = 0.01
PARAMETERS = 61100840
CLASSES = 1000
IMAGE = (3, 224, 224)


class Convolution(typing.NamedTuple):
    kernel: int
    stride: int
    pad: int
    ins: int
    outs: int
    pool: bool  # 3 x 3, every 2


CONVOLUTIONS = (
    Convolution(11, 4, 2, 3, 64, True),
    Convolution(5, 1, 2, 64, 192, True),
    Convolution(3, 1, 1, 192, 384, False),
    Convolution(3, 1, 1, 384, 256, False),
    Convolution(3, 1, 1, 256, 256, True),
)
DENSE = (9216, 4096, 4096, CLASSES)


def check_size(count):
    assert count == PARAMETERS, f"{count} parameters"


def tf2_parameters(tf):
    """[weights, bias] of each layer, He's."""
    random = np.random.RandomState(0)

    def layer(*shape):
        deviation = np.sqrt(2 / np.prod(shape[:-1]))
        weights = random.standard_normal(shape) * deviation
        return [tf.Variable(weights.astype(np.float32)),
                tf.Variable(tf.zeros([shape[-1]]))]
    return ([layer(c.kernel, c.kernel, c.ins, c.outs) for c in CONVOLUTIONS] +
            [layer(a, b) for a, b in zip(DENSE, DENSE[1:])])


def tf2_logits(tf, layers, x):
    for c, (weights, bias) in zip(CONVOLUTIONS, layers):
        pad = [c.pad, c.pad]
        x = tf.nn.conv2d(x, weights, c.stride, [[0, 0], pad, pad, [0, 0]])
        x = tf.nn.relu(tf.nn.bias_add(x, bias))
        if c.pool:
            x = tf.nn.max_pool2d(x, 3, 2, "VALID")
    x = tf.reshape(x, [-1, DENSE[0]])
    for weights, bias in layers[len(CONVOLUTIONS):-1]:
        x = tf.nn.relu(tf.matmul(x, weights) + bias)
    weights, bias = layers[-1]
    return tf.matmul(x, weights) + bias


def run_tf2(options):
    tf = common.tensorflow(options.threads)
    layers = tf2_parameters(tf)
    parameters = [p for layer in layers for p in layer]
    check_size(sum(int(np.prod(p.shape)) for p in parameters))
    random = np.random.RandomState(1)
    images = tf.constant(random.standard_normal(
        (options.batch, *IMAGE[1:], IMAGE[0])).astype(np.float32))
    labels = tf.constant(random.randint(0, CLASSES, options.batch))

    @tf.function(jit_compile=options.peer == "tf2_jit")
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=y, logits=tf2_logits(tf, layers, x)))
        for p, diff in zip(parameters, tape.gradient(loss, parameters)):
            p.assign_sub(LEARNING_RATE * diff)
        return loss
    return lambda: float(train(images, labels)), tf.__version__


def torch_net(torch):
    nn, layers = torch.nn, []
    for c in CONVOLUTIONS:
        layers += [nn.Conv2d(c.ins, c.outs, c.kernel, c.stride, c.pad),
                   nn.ReLU()]
        if c.pool:
            layers.append(nn.MaxPool2d(3, 2))
    layers.append(nn.Flatten())
    for a, b in zip(DENSE, DENSE[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def run_torch(options):
    import torch
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    net = torch_net(torch)
    check_size(sum(p.numel() for p in net.parameters()))
    images = torch.randn(options.batch, *IMAGE)
    labels = torch.randint(CLASSES, (options.batch,))
    if options.peer in ("torch_cl", "torch_bf16"):
        net = net.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE)

    def precision():
        if options.peer == "torch_bf16":
            return torch.autocast("cpu", torch.bfloat16)
        return contextlib.nullcontext()

    def step():
        optimizer.zero_grad()
        with precision():
            loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step, torch.__version__


PEERS = {"tf2": run_tf2, "tf2_jit": run_tf2, "torch": run_torch,
         "torch_cl": run_torch, "torch_bf16": run_torch}


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    common.add_windows(parser)
    options = parser.parse_args()
    step, version = PEERS[options.peer](options)
    rates = common.windows(step, options.seconds, options.windows)
    common.emit_speed(options, rates, version)


if __name__ == "__main__":
    main()
