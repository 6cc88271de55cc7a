"""Logistic regression over 33,762,578 features, 39 an example, plain SGD, in
other systems.  200,000 examples like those of synthetic-sparse stay in memory.

peers: tf2        tf.function, a call a step
       tf2_loop   tf.function over 50 steps, data in the graph
       torch      eager, EmbeddingBag with sparse gradients
"""
import common
import numpy as np

FEATURES = 33762578
EXAMPLES = 200000
COUNTS, BUCKETS, CATEGORIES = 13, 16, 26
LEARNING_RATE = 0.5
STEPS_A_CALL = 50


def make_data():
    """(ids [n, 39] as int64, labels [n] as float32)"""
    random = np.random.RandomState(1)
    buckets = np.minimum(random.geometric(0.5, (EXAMPLES, COUNTS)), BUCKETS)
    counts = (buckets - 1) * COUNTS + np.arange(COUNTS)
    ranks = (FEATURES - COUNTS * BUCKETS) // CATEGORIES
    uniform = random.random_sample((EXAMPLES, CATEGORIES))
    rank = np.exp(uniform * np.log(ranks + 1)).astype(np.int64) - 1
    categories = (COUNTS * BUCKETS + np.minimum(rank, ranks - 1) * CATEGORIES +
                  np.arange(CATEGORIES))
    ids = np.concatenate([counts, categories], 1).astype(np.int64)
    labels = (random.random_sample(EXAMPLES) < 0.25).astype(np.float32)
    return ids, labels


def run_tf2(options):
    tf = common.tensorflow(options.threads)
    data = (tf.data.Dataset.from_tensor_slices(make_data())
            .batch(options.batch, drop_remainder=True).cache().repeat()
            .prefetch(tf.data.AUTOTUNE))
    weights = tf.Variable(tf.zeros([FEATURES]))
    batches = iter(data)

    def train(x, y):
        with tf.GradientTape() as tape:
            logits = tf.reduce_sum(tf.gather(weights, x), 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
                labels=y, logits=logits))
        diff = tape.gradient(loss, weights)
        weights.scatter_sub(tf.IndexedSlices(LEARNING_RATE * diff.values,
                                             diff.indices))
        return loss

    if options.peer == "tf2":
        one = tf.function(train)
        return lambda: float(one(*next(batches))), tf.__version__, 1

    @tf.function
    def many(it):
        loss = 0.0
        for _ in tf.range(STEPS_A_CALL):
            loss = train(*next(it))
        return loss
    return lambda: float(many(batches)), tf.__version__, STEPS_A_CALL


def run_torch(options):
    import torch
    torch.set_num_threads(options.threads)
    ids, labels = (torch.from_numpy(a) for a in make_data())
    table = torch.nn.EmbeddingBag(FEATURES, 1, mode="sum", sparse=True)
    torch.nn.init.zeros_(table.weight)
    optimizer = torch.optim.SGD(table.parameters(), LEARNING_RATE)
    rows = common.Rows(EXAMPLES, options.batch)

    def step():
        at = rows.next()
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            table(ids[at])[:, 0], labels[at])
        loss.backward()
        optimizer.step()
        return loss.item()
    return step, torch.__version__, 1


PEERS = {"tf2": run_tf2, "tf2_loop": run_tf2, "torch": run_torch}


def main():
    parser = common.arguments(__doc__.splitlines()[0])
    common.add_windows(parser)
    options = parser.parse_args()
    step, version, steps = PEERS[options.peer](options)
    rates = common.windows(step, options.seconds, options.windows)
    common.emit_speed(options, [steps * rate for rate in rates], version)


if __name__ == "__main__":
    main()
