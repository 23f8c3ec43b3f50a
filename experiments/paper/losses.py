"""The points that the guard expects changed networks to lose. They follow from sizes, so they hold on every machine: a line that one machine wrote serves all."""
import hashlib
import json

from session import Refused

LIMIT = 1.0   # what rules/discover.rules allows


def key_of(model, plan):
    return f"{model} {hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]}"


def ask(session, model, plans):
    """Has the guard judge the plans that have no line yet."""
    table = session.rows("losses")
    missing = {key_of(model, plan): plan for plan in plans if not table.has(key_of(model, plan))}
    if not missing or not session.judged:
        return
    session.say(f"expected losses of {len(missing)} variants of {model}")
    scored(session, table, model, list(missing.items()))


def scored(session, table, model, plans):
    """One command for all of them; where one cannot be applied, the halves are asked by themselves."""
    folder = session.out / "plans"
    folder.mkdir(exist_ok=True)
    words = []
    for key, plan in plans:
        file = folder / f"{key.split()[1]}.plan.json"
        file.write_text(json.dumps(plan))
        words += ["--plan", file]
    try:
        answer = session.ask("score", model, *words, "--seeds", 1, "--batch", 2)   # the measures that draw seeds are not used
    except Refused as e:
        if len(plans) == 1:
            return table.add(plans[0][0], refused=str(e), points=None)
        for half in (plans[:len(plans) // 2], plans[len(plans) // 2:]):
            scored(session, table, model, half)
        return
    for (key, _), variant in zip(plans, answer["variants"]):
        loss = next(iter(variant["guards"].values()))["loss"]
        table.add(key, refused=None, points=loss["points"], low=loss["low"], high=loss["high"], macs=variant["macs"], parameters=variant["parameters"])


def of(session, model, plan):
    """The line of a plan, or nothing where it was not asked about or does not apply."""
    line = session.rows("losses").known.get(key_of(model, plan))
    return line if line and not line["refused"] else None


def points(session, row):
    """Of a line that layers.try_layer wrote."""
    found = of(session, row["model"], plan_of(row["site"], row["rules"]))
    return found["points"] if found else None


def application(rule):
    """'group-axes a=co b=ci g=2' as a plan writes it."""
    name, *values = split(rule)
    return {"rule": name, "with": {f"?{k}": int(v) if v.isdigit() else v for k, v in (x.split("=", 1) for x in values)}}


def split(rule):
    """At spaces outside brackets."""
    words, depth = [""], 0
    for c in rule:
        depth += (c == "(") - (c == ")")
        if c == " " and depth == 0:
            words.append("")
        else:
            words[-1] += c
    return words


def plan_of(site, rules):
    return {"steps": [{"site": site, "apply": [application(r) for r in rules]}]}
