#!/usr/bin/env python3
"""Prints the table of the networks that `optimize` chose: the training runs labelled `chosen` in fisher/truth/results.jsonl, compared with the originals of the same day.

    python3 experiments/chosen-networks/table.py
"""
import json
import pathlib
import statistics

RESULTS = pathlib.Path(__file__).resolve().parent.parent.parent / "fisher/truth/results.jsonl"


def groups():
    """Each original of a day with the networks that were trained with it, in the order of the file."""
    found = []
    for line in RESULTS.read_text().splitlines():
        row = json.loads(line)
        if row["labels"] != "chosen":
            continue
        if row["name"].startswith("original") and (not found or found[-1][0][0]["name"] != row["name"]):
            found.append([[]])
        rows = next((r for r in found[-1] if not r or r[0]["name"] == row["name"]), None)
        if rows is None:
            rows = []
            found[-1].append(rows)
        rows.append(row)
    return found


def main():
    originals = [row["accuracy"] for group in groups() for row in group[0]]
    print("| network | MACs | parameters | n | mean accuracy | standard deviation | points lost, same day | points lost, all originals |")
    print("|---|---|---|---|---|---|---|---|")
    for group in groups():
        same_day = statistics.mean(row["accuracy"] for row in group[0])
        for rows in group:
            accuracies = [row["accuracy"] for row in rows]
            mean, name = statistics.mean(accuracies), rows[0]["name"].split("-")[0]
            lost = "" if name.startswith("original") else f"{same_day - mean:.2f}"
            lost_of_all = "" if name.startswith("original") else f"{statistics.mean(originals) - mean:.2f}"
            print(f"| {name.replace(' for', ', for')} | {rows[0]['macs'] / 1e6:.0f} M | {rows[0]['params'] / 1e6:.1f} M | {len(rows)} | {mean:.2f}% | {statistics.stdev(accuracies):.2f} | {lost} | {lost_of_all} |")
    print(f"\nAll {len(originals)} training runs of the original: {statistics.mean(originals):.2f}% on average, standard deviation {statistics.stdev(originals):.2f}.")


if __name__ == "__main__":
    main()
