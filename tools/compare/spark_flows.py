"""Runs one flow by PySpark on two threads, for tools/compare/flows.

    python spark_flows.py WAY FLOW OUTPUT FILE... [--memory 6g] [--folder FOLDER]

WAY is rdd or dataframe. Prints a JSON object with the seconds of the flow, those that Spark took to
start before, and versions. The result is text in the folder OUTPUT.
Of a file of links, each node must be the source of a link.
"""
import argparse
import json
import operator
import time

TOP = 1000
ITERATIONS = 10
DAMPING = 0.85
# Spark's default of 200 is for clusters.
PARTS = 8


def save_lines(spark, lines, output):
    spark.sparkContext.parallelize(lines, 1).saveAsTextFile(output)


class Rdd:
    def __init__(self, spark):
        self.spark, self.context = spark, spark.sparkContext

    def wordcount(self, output, text):
        counts = (self.context.textFile(text).flatMap(str.split).map(lambda word: (word, 1))
                  .reduceByKey(operator.add))
        top = counts.takeOrdered(TOP, key=lambda count: (-count[1], count[0]))
        save_lines(self.spark, [f"{word}\t{count}" for word, count in top], output)

    def sort(self, output, records):
        self.context.textFile(records).sortBy(lambda line: line).saveAsTextFile(output)

    def pagerank(self, output, links):
        pairs = self.context.textFile(links).map(lambda line: tuple(map(int, line.split())))
        targets = pairs.groupByKey(PARTS).mapValues(list).cache()
        count = targets.count()
        ranks = targets.mapValues(lambda _: 1 / count)

        def shares(node):
            goals, rank = node[1]
            yield node[0], 0.0
            for goal in goals:
                yield goal, rank / len(goals)
        for _ in range(ITERATIONS):
            ranks = (targets.join(ranks, PARTS).flatMap(shares).reduceByKey(operator.add, PARTS)
                     .mapValues(lambda got: (1 - DAMPING) / count + DAMPING * got))
        top = ranks.takeOrdered(TOP, key=lambda node: (-node[1], str(node[0])))
        save_lines(self.spark, [f"{node}\t{rank!r}" for node, rank in top], output)

    def join(self, output, left, right):
        def pairs(path):
            return self.context.textFile(path).map(lambda line: tuple(line.split(",")))
        joined = pairs(left).join(pairs(right), PARTS)
        joined.map(lambda row: f"{row[0]},{row[1][0]},{row[1][1]}").saveAsTextFile(output)


class DataFrame:
    def __init__(self, spark):
        self.spark = spark

    def wordcount(self, output, text):
        from pyspark.sql import functions as f
        words = self.spark.read.text(text).select(f.explode(f.split("value", " ")).alias("word"))
        counts = words.where("word <> ''").groupBy("word").count()
        top = counts.orderBy(f.desc("count"), "word").limit(TOP)
        top.coalesce(1).write.csv(output, sep="\t")

    def sort(self, output, records):
        self.spark.read.text(records).sort("value").write.text(output)

    def pagerank(self, output, links):
        from pyspark.sql import functions as f
        links = self.spark.read.csv(links, sep=" ", schema="source long, target long")
        degrees = links.groupBy("source").agg(f.count("*").alias("degree"))
        links = links.join(degrees, "source").repartition(PARTS, "source").cache()
        nodes = degrees.select(f.col("source").alias("node")).repartition(PARTS, "node").cache()
        count = nodes.count()
        ranks = nodes.select("node", f.lit(1 / count).alias("rank"))
        for _ in range(ITERATIONS):
            sent = links.join(ranks, links.source == ranks.node)
            got = sent.groupBy("target").agg(f.sum(f.col("rank") / f.col("degree")).alias("got"))
            rank = (1 - DAMPING) / count + DAMPING * f.coalesce("got", f.lit(0.0))
            ranks = (nodes.join(got, nodes.node == got.target, "left")
                     .select("node", rank.alias("rank")))
        top = ranks.orderBy(f.desc("rank"), f.col("node").cast("string")).limit(TOP)
        top.coalesce(1).write.csv(output, sep="\t")

    def join(self, output, left, right):
        rows = self.spark.read.csv(left, schema="key string, value string")
        other = self.spark.read.csv(right, schema="key string, name string")
        rows.join(other, "key").select("key", "value", "name").write.csv(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=("rdd", "dataframe"))
    parser.add_argument("flow", choices=("wordcount", "sort", "pagerank", "join"))
    parser.add_argument("output")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--memory", default="6g", help="the JVM's heap [6g]")
    parser.add_argument("--folder", default="/tmp", help="for Spark's temporary files [/tmp]")
    options = parser.parse_args()
    begun = time.monotonic()
    from pyspark.sql import SparkSession
    spark = (SparkSession.builder.master("local[2]").config("spark.driver.memory", options.memory)
             .config("spark.local.dir", options.folder).config("spark.ui.enabled", "false")
             .config("spark.sql.shuffle.partitions", PARTS).getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    started = time.monotonic()
    flows = Rdd(spark) if options.way == "rdd" else DataFrame(spark)
    getattr(flows, options.flow)(options.output, *options.files)
    done = time.monotonic()
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")
    print(json.dumps({"seconds": done - started, "start_seconds": started - begun,
                      "versions": f"PySpark {spark.version}, Java {java}"}))
    spark.stop()


if __name__ == "__main__":
    main()
