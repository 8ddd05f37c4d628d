"""Measurements beside C++ on the same driver: ``ci/benchmark.sh``."""
