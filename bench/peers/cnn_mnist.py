"""Convolutional networks on MNIST, plain SGD, in other systems.

models: lenet         5x5 convolutions to 6 and 16 channels, dense 120, 84, 10
        three_blocks  3x3 convolutions to 11, 23 and 37 channels, dense 10
        Each convolution is followed by ReLU and 2x2 max pooling.

peers: tf2            one tf.function call a step, tf.data
       tf2_loop       10 steps inside one tf.function
       keras          model.fit, an epoch a call
       torch          eager
       torch_compile  torch.compile
"""
import typing

import common
import numpy as np

LEARNING_RATE = 0.01
STEPS_INSIDE = 10  # of tf2_loop; more make no difference to steps this long


class Model(typing.NamedTuple):
    kernel: int
    channels: tuple  # after each convolution
    same: tuple      # whether a convolution keeps height and width
    flat: int        # inputs of the first dense layer
    dense: tuple     # outputs of the dense layers


MODELS = {
    "lenet": Model(5, (6, 16), (True, False), 400, (120, 84, 10)),
    "three_blocks": Model(3, (11, 23, 37), (True, True, True), 333, (10,)),
}


class Trainer(typing.NamedTuple):
    call: typing.Callable   # makes `steps` training steps
    steps: int
    logits: typing.Callable  # of images [n, 784], as an array
    version: str


def tf2_parameters(tf, model):
    """[weights, bias] of each layer."""
    random = np.random.RandomState(0)

    def layer(*shape):
        area = int(np.prod(shape[:-2]))
        most = np.sqrt(6 / (area * (shape[-2] + shape[-1])))  # Glorot
        weights = random.uniform(-most, most, shape).astype(np.float32)
        return [tf.Variable(weights), tf.Variable(tf.zeros([shape[-1]]))]
    ins = (1, *model.channels)
    wide = (model.flat, *model.dense)
    return ([layer(model.kernel, model.kernel, a, b)
             for a, b in zip(ins, ins[1:])] +
            [layer(a, b) for a, b in zip(wide, wide[1:])])


def tf2_logits(tf, model, layers, x):
    convolutions = len(model.channels)
    for (weights, bias), same in zip(layers, model.same):
        x = tf.nn.conv2d(x, weights, 1, "SAME" if same else "VALID")
        x = tf.nn.relu(tf.nn.bias_add(x, bias))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
    x = tf.reshape(x, [-1, model.flat])
    for weights, bias in layers[convolutions:-1]:
        x = tf.nn.relu(tf.matmul(x, weights) + bias)
    weights, bias = layers[-1]
    return tf.matmul(x, weights) + bias


def run_tf2(options, model, images, labels):
    tf = common.tensorflow(options.threads)
    layers = tf2_parameters(tf, model)
    parameters = [p for layer in layers for p in layer]
    images = images.reshape(-1, 28, 28, 1)
    batches = iter(tf.data.Dataset.from_tensor_slices((images, labels)).cache()
                   .batch(options.batch, drop_remainder=True).repeat()
                   .prefetch(tf.data.AUTOTUNE))

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=y, logits=tf2_logits(tf, model, layers, x)))
        for p, diff in zip(parameters, tape.gradient(loss, parameters)):
            p.assign_sub(LEARNING_RATE * diff)

    def logits(x):
        return tf2_logits(tf, model, layers, x.reshape(-1, 28, 28, 1)).numpy()

    if options.peer == "tf2":
        one = tf.function(train)
        return Trainer(lambda: one(*next(batches)), 1, logits, tf.__version__)

    @tf.function
    def many(batches):
        for _ in tf.range(STEPS_INSIDE):
            train(*next(batches))
    return Trainer(lambda: many(batches), STEPS_INSIDE, logits, tf.__version__)


def run_keras(options, model, images, labels):
    tf = common.tensorflow(options.threads)
    import keras
    keras.utils.set_random_seed(0)
    layers = [keras.Input((28, 28, 1))]
    for channels, same in zip(model.channels, model.same):
        layers += [keras.layers.Conv2D(
            channels, model.kernel, padding="same" if same else "valid",
            activation="relu"), keras.layers.MaxPooling2D(2)]
    layers.append(keras.layers.Flatten())
    layers += [keras.layers.Dense(n, activation="relu")
               for n in model.dense[:-1]]
    net = keras.Sequential(layers + [keras.layers.Dense(model.dense[-1])])
    net.compile(keras.optimizers.SGD(LEARNING_RATE),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    steps = len(images) // options.batch
    images = images[:steps * options.batch].reshape(-1, 28, 28, 1)
    labels = labels[:steps * options.batch]

    def fit():
        net.fit(images, labels, batch_size=options.batch, epochs=1, verbose=0)

    def logits(x):
        return net.predict(x.reshape(-1, 28, 28, 1), 1000, verbose=0)
    return Trainer(fit, steps, logits, tf.__version__)


def torch_net(torch, model):
    nn, layers = torch.nn, []
    ins = (1, *model.channels)
    for a, b, same in zip(ins, model.channels, model.same):
        layers += [nn.Conv2d(a, b, model.kernel,
                             padding=model.kernel // 2 if same else 0),
                   nn.ReLU(), nn.MaxPool2d(2)]
    layers.append(nn.Flatten())
    wide = (model.flat, *model.dense)
    for a, b in zip(wide, model.dense):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def run_torch(options, model, images, labels):
    import torch
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    images = torch.from_numpy(images).view(-1, 1, 28, 28)
    labels = torch.from_numpy(labels)
    net = torch_net(torch, model)
    for p in net.parameters():  # Glorot, as in the other peers
        if p.dim() > 1:
            torch.nn.init.xavier_uniform_(p)
        else:
            torch.nn.init.zeros_(p)
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE)

    def loss(x, y):
        return torch.nn.functional.cross_entropy(net(x), y)
    if options.peer == "torch_compile":
        loss = torch.compile(loss)
    rows = common.Rows(len(images), options.batch)

    def step():
        part = rows.next()
        optimizer.zero_grad()
        loss(images[part], labels[part]).backward()
        optimizer.step()

    def logits(x):
        with torch.no_grad():
            return net(torch.from_numpy(x).view(-1, 1, 28, 28)).numpy()
    return Trainer(step, 1, logits, torch.__version__)


PEERS = {"tf2": run_tf2, "tf2_loop": run_tf2, "keras": run_keras,
         "torch": run_torch, "torch_compile": run_torch}


def accuracy_after_epoch(options, trainer, examples):
    """Of the test examples; the epoch ends with the last whole call."""
    for _ in range(examples // options.batch // trainer.steps):
        trainer.call()
    images, labels = common.load(options.data, "t10k")
    return float(np.mean(trainer.logits(images).argmax(1) == labels))


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    common.add_windows(parser)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--accuracy", action="store_true",
                        help="test after one epoch, instead of the speed")
    options = parser.parse_args()
    images, labels = common.load_shuffled(options.data)
    trainer = PEERS[options.peer](options, MODELS[options.model], images,
                                  labels)
    if options.accuracy:
        common.emit(accuracy=accuracy_after_epoch(options, trainer,
                                                  len(images)))
        return
    rates = common.windows(trainer.call, options.seconds, options.windows,
                           trainer.steps)
    common.emit_speed(options, rates, trainer.version)


if __name__ == "__main__":
    main()
