"""Templates for the environments whose tools describe every argument: one fits into a small context."""

from draws import Part, shuffled

CROPS = ["tomatoes", "orchids", "basil", "cucumbers", "melons", "peppers"]
DISHES = ["leek soup", "plum dumplings", "bean stew", "barley risotto", "potato gratin", "rice pudding"]
FOODS = ["leeks", "beans", "barley", "potatoes", "plums", "rice"]
TOPICS = ["Comet tails", "Dwarf galaxies", "Pulsar timing", "Lunar craters", "Double stars", "Dusty rings"]


def museum(draw):
    ids, hours, day = draw.ids("t"), draw.sample(range(9, 17), 2), draw.day()
    slots = {key: {"day": day, "time": f"{hour:02}:00"} for key, hour in zip(ids, hours)}
    return {"slots": shuffled(draw, slots)}, ids, day


def museum_order(draw, person):
    state, ids, day = museum(draw)
    adults, children = draw.randint(1, 4), draw.randint(1, 5)
    time = state["slots"][ids[0]]["time"]
    text = f"{person} wants museum tickets for {day} at {time}: {adults} adults and {children} children."
    return Part("Museum", state, text, [
        ("list_slots", {"day": day}),
        ("order_tickets", {"slot_id": ids[0], "name": person, "adults": adults, "children": children}),
    ])


def museum_ordered(draw, person):
    state, ids, day = museum(draw)
    order, adults = f"T{draw.randint(2, 20)}", draw.randint(2, 6)
    state["orders"] = {
        order: {"slot_id": ids[0], "name": person, "visitors": {"adults": adults}, "total": 1200 * adults}
    }
    found, time = ("find_orders", {"name": person}), state["slots"][ids[1]]["time"]
    guides = draw.randint(1, adults)
    text, calls = draw.choice([
        ("{p} gives the museum tickets back; refund them.", [("refund_order", {"order_id": order})]),
        ("{p} and the others are at the museum's door; let them in.", [("admit", {"order_id": order})]),
        ("Add {g} audio guides to the museum order of {p}.", [("add_guides", {"order_id": order, "count": guides})]),
        ("{p} would rather enter the museum at {t} on {d}; move the order.", [
            ("list_slots", {"day": day}),
            ("move_order", {"order_id": order, "slot_id": ids[1]}),
        ]),
    ])
    return Part("Museum", state, text.format(p=person, g=guides, t=time, d=day), [found, *calls])


def greenhouse(draw, person):
    crops, ids = draw.two(CROPS), draw.two(["north", "south", "east", "west", "middle"])
    zones = {key: {"crop": crop, "temperature": draw.randint(24, 56) / 2} for key, crop in zip(ids, crops)}
    percent, litres = draw.randint(1, 10) * 10, draw.randint(2, 25)
    text, tool, change = draw.choice([
        ("{p} asks you to open the vent above the {c} to {v} percent.", "set_vent", {"percent": percent}),
        ("{p} says it is too cold for the {c}; start their heater.", "set_heater", {"on": True}),
        ("{p} wants the {c} watered with {w} litres.", "water", {"litres": litres}),
    ])
    text = text.format(p=person, c=crops[0], v=percent, w=litres)
    return Part("Greenhouse", {"zones": shuffled(draw, zones)}, text, [
        ("list_zones", {"crop": crops[0]}),
        (tool, {"zone_id": ids[0], **change}),
    ])


def kitchen(draw, person):
    foods, dish, (recipe,) = draw.two(FOODS), draw.choice(DISHES), draw.ids("r", 1)
    each, portions = draw.randint(3, 20) * 10, draw.randint(2, 12)
    state = {"stock": {foods[0]: {"amount": 0}}, "recipes": {recipe: {"title": dish, "needs": {foods[0]: each}}}}
    found, arguments = ("find_recipes", {"text": dish}), {"recipe_id": recipe, "portions": portions}
    action = draw.choice(["cook", "serve", "plan_shopping", "add_stock"])
    if action == "add_stock":
        amount = each * portions
        return Part("Kitchen", state, f"{person} delivers {amount} g of {foods[0]}; put it on the shelf.", [
            (action, {"ingredient": foods[0], "amount": amount})
        ])
    text = {
        "cook": "{p} asks for {n} portions of {d} to be cooked.",
        "serve": "Serve {n} portions of {d} to {p}.",
        "plan_shopping": "{p} plans {n} portions of {d}; put what is missing on the shopping list.",
    }[action]
    if action == "cook":
        state["stock"][foods[0]]["amount"] = each * portions + draw.randint(0, 300)
    if action == "serve":
        state["ready"] = [{"recipe_id": recipe, "portions": portions + draw.randint(0, 3)}]
    return Part("Kitchen", state, text.format(p=person, n=portions, d=dish), [found, (action, arguments)])


def parcels(draw, person):
    (parcel,), size, number = draw.ids("P", 1), draw.choice("SML"), draw.randint(2, 9)
    code, days = str(draw.randint(1000, 9999)), draw.randint(1, 7)
    action = draw.choice(["accept", "collect", "return"])
    if action == "accept":
        state = {"lockers": {"A1": {}}, "next_parcel": number}
        word = {"S": "small", "M": "medium", "L": "large"}[size]
        call = ("accept_parcel", {"recipient": person, "size": size})
        return Part("ParcelDepot", state, f"A {word} parcel for {person} has come in; accept it.", [call])
    if action == "collect":
        stored = {"recipient": person, "status": "locker", "days": days, "code": code}
        state = {"parcels": {parcel: stored}, "lockers": {"A1": {"parcel_id": parcel}}}
        call = ("collect_parcel", {"recipient": person, "code": code})
        return Part("ParcelDepot", state, f"{person} is here for a parcel and has the code {code}.", [call])
    state = {"parcels": {parcel: {"recipient": person, "size": size}}}
    return Part("ParcelDepot", state, f"{person} does not want the parcel that came; send it back.", [
        ("find_parcels", {"recipient": person}),
        ("return_to_sender", {"parcel_id": parcel}),
    ])


def chess(draw, person):
    other, ids = draw.somebody_but(person), draw.ids("p")
    ratings = [draw.randint(110, 200) * 10 for _ in ids]
    players = {key: {"name": name, "rating": rating} for key, name, rating in zip(ids, (person, other), ratings)}
    found, cents, action = ("find_player", {"name": person}), draw.randint(5, 30) * 100, draw.choice("gfr")
    state = {"players": shuffled(draw, players)}
    if action == "f":
        return Part("ChessClub", state, f"Charge {person} a membership fee of {cents} cents.", [
            found,
            ("charge_fee", {"player_id": ids[0], "cents": cents}),
        ])
    if action == "r":
        return Part("ChessClub", state, f"{person} is ill and sits out the chess evenings.", [
            found,
            ("set_resting", {"player_id": ids[0], "resting": True}),
        ])
    result, verb = draw.choice([("1-0", "beat"), ("0-1", "lost to"), ("1/2", "drew with")])
    return Part("ChessClub", state, f"{person} had white and {verb} {other}; enter the game.", [
        found,
        ("find_player", {"name": other}),
        ("record_game", {"white": ids[0], "black": ids[1], "result": result}),
    ])


def observatory(draw, person):
    (proposal,), (dome,), topic, night = draw.ids("Q", 1), draw.ids("T", 1), draw.choice(TOPICS), draw.day()
    hours = draw.randint(1, 7) + 0.5
    state = {
        "telescopes": {dome: {"aperture": 1.5, "instruments": ["camera"], "mounted": "camera"}},
        "proposals": {proposal: {"title": topic, "investigator": person, "instrument": "camera", "hours": hours + 1}},
        "nights": {night: 9.5},
    }
    return Part("Observatory", state, f"Give {person} {hours} hours on telescope {dome} on {night} for {topic}.", [
        ("find_proposals", {"text": topic}),
        ("allocate", {"proposal_id": proposal, "telescope_id": dome, "night": night, "hours": hours}),
    ])


def apiary(draw, person):
    (hive,), site, frames = draw.ids("h", 1), draw.choice(["heath", "orchard", "quarry", "meadow"]), draw.randint(2, 9)
    state = {"hives": {hive: {"site_id": site, "queen": 2025}}, "sites": {site: {"name": site}}}
    listed, action = ("list_hives", {"site_id": site}), draw.choice(["harvest", "add_super", "feed"])
    if action == "harvest":
        state["hives"][hive].update(supers=1, frames=frames + draw.randint(0, 2))
        text, call = f"take {frames} frames of honey from", (action, {"hive_id": hive, "frames": frames})
    elif action == "add_super":
        text, call = "put a super on", (action, {"hive_id": hive})
    else:
        kilograms = draw.randint(1, 8) + 0.5
        text, call = f"feed {kilograms} kg of sugar to", (action, {"hive_id": hive, "kilograms": kilograms})
    return Part("Apiary", state, f"{person} asks you to {text} the one hive at site {site}.", [listed, call])


TEMPLATES = [museum_order, museum_ordered, greenhouse, kitchen, parcels, chess, observatory, apiary]
