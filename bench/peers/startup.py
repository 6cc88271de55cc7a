"""Seconds from the start of the process to the end of the first training step
of softmax regression, reading the data included.  peers: tf1, tf2, torch"""
import os
import common


def since_start():
    """Seconds this process has lived, to a hundredth."""
    with open("/proc/self/stat") as file:
        started = int(file.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime") as file:
        uptime = float(file.read().split()[0])
    return uptime - started / os.sysconf("SC_CLK_TCK")


def step_torch(x, y):
    import torch
    layer = torch.nn.Linear(784, 10)
    optimizer = torch.optim.SGD(layer.parameters(), 0.5)
    torch.nn.functional.cross_entropy(
        layer(torch.from_numpy(x)), torch.from_numpy(y)).backward()
    optimizer.step()


def step_tf1(images, labels):
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.int64, [None])
    weights = tf.Variable(tf.zeros([784, 10]))
    bias = tf.Variable(tf.zeros([10]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=y, logits=tf.matmul(x, weights) + bias))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    session.run(train, {x: images, y: labels})


def step_tf2(images, labels):
    import tensorflow as tf
    weights = tf.Variable(tf.zeros([784, 10]))
    bias = tf.Variable(tf.zeros([10]))

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=y, logits=tf.matmul(x, weights) + bias))
        diff_weights, diff_bias = tape.gradient(loss, [weights, bias])
        weights.assign_sub(0.5 * diff_weights)
        bias.assign_sub(0.5 * diff_bias)
    train(tf.constant(images), tf.constant(labels))


def main():
    options = common.arguments(__doc__).parse_args()
    images, labels = common.load_train(options.data)
    step = {"tf1": step_tf1, "tf2": step_tf2, "torch": step_torch}
    step[options.peer](images[:options.batch], labels[:options.batch])
    common.emit(first_step_s=since_start())


if __name__ == "__main__":
    main()
