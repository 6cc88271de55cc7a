"""Softmax regression, 784 x 10, plain SGD, in other systems.

peers: tf1            graph and feed_dict
       tf2            one tf.function call a step, tf.data
       tf2_loop       100 steps inside one tf.function: TensorFlow's fastest
       keras          model.fit
       keras_spe      model.fit, steps_per_execution=100
       torch          eager
       torch_compile  torch.compile
"""
import common
import numpy as np

LEARNING_RATE = 0.5
STEPS_INSIDE = 100  # of tf2_loop and keras_spe


def run_tf1(options, images, labels):
    import tensorflow
    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
    onehot = np.eye(10, dtype=np.float32)[labels]
    x = tf.placeholder(tf.float32, [None, 784])
    y = tf.placeholder(tf.float32, [None, 10])
    weights = tf.Variable(tf.zeros([784, 10]))
    bias = tf.Variable(tf.zeros([10]))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=y, logits=tf.matmul(x, weights) + bias))
    train = tf.train.GradientDescentOptimizer(LEARNING_RATE).minimize(loss)
    session = tf.Session(config=tf.ConfigProto(
        intra_op_parallelism_threads=options.threads,
        inter_op_parallelism_threads=options.threads))
    session.run(tf.global_variables_initializer())
    rows = common.Rows(len(images), options.batch)

    def step():
        part = rows.next()
        session.run(train, {x: images[part], y: onehot[part]})
    return step, 1, tensorflow.__version__


def run_tf2(options, images, labels):
    tf = common.tensorflow(options.threads)
    weights = tf.Variable(tf.zeros([784, 10]))
    bias = tf.Variable(tf.zeros([10]))
    batches = iter(tf.data.Dataset.from_tensor_slices((images, labels)).cache()
                   .batch(options.batch, drop_remainder=True).repeat()
                   .prefetch(tf.data.AUTOTUNE))

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(
                    labels=y, logits=tf.matmul(x, weights) + bias))
        diff_weights, diff_bias = tape.gradient(loss, [weights, bias])
        weights.assign_sub(LEARNING_RATE * diff_weights)
        bias.assign_sub(LEARNING_RATE * diff_bias)

    if options.peer == "tf2":
        one = tf.function(train)
        return lambda: one(*next(batches)), 1, tf.__version__

    @tf.function
    def many(batches):
        for _ in tf.range(STEPS_INSIDE):
            train(*next(batches))
    return lambda: many(batches), STEPS_INSIDE, tf.__version__


def run_keras(options, images, labels):
    tf = common.tensorflow(options.threads)
    import keras
    model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(10)])
    model.compile(
        keras.optimizers.SGD(LEARNING_RATE),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        steps_per_execution=STEPS_INSIDE if options.peer == "keras_spe" else 1)
    steps = min(len(images) // options.batch, 2000)
    images, labels = (a[:steps * options.batch] for a in (images, labels))

    def fit():
        model.fit(images, labels, batch_size=options.batch, epochs=1,
                  verbose=0)
    return fit, steps, tf.__version__


def run_torch(options, images, labels):
    import torch
    torch.set_num_threads(options.threads)
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    layer = torch.nn.Linear(784, 10)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(layer.parameters(), LEARNING_RATE)

    def loss(x, y):
        return torch.nn.functional.cross_entropy(layer(x), y)
    if options.peer == "torch_compile":
        loss = torch.compile(loss)
    rows = common.Rows(len(images), options.batch)

    def step():
        part = rows.next()
        optimizer.zero_grad()
        loss(images[part], labels[part]).backward()
        optimizer.step()
    return step, 1, torch.__version__


PEERS = {"tf1": run_tf1, "tf2": run_tf2, "tf2_loop": run_tf2,
         "keras": run_keras, "keras_spe": run_keras,
         "torch": run_torch, "torch_compile": run_torch}


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    common.add_windows(parser)
    options = parser.parse_args()
    images, labels = common.load_shuffled(options.data)
    call, steps, version = PEERS[options.peer](options, images, labels)
    rates = common.windows(call, options.seconds, options.windows, steps)
    common.emit_speed(options, rates, version)


if __name__ == "__main__":
    main()
