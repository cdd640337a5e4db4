"""Templates for the environments whose tools have one-line descriptions: two of them fit into one small context."""

from draws import Part, shuffled

TITLES = ["Glass Harbour", "The Ninth Bell", "Letters to Oslo", "A Field of Crows", "Paper Moons", "The Cartographer"]
COURSES = ["Yoga", "Boxing", "Rowing", "Pilates", "Climbing", "Fencing", "Dance"]
DAYS = {"Mon": "Monday", "Tue": "Tuesday", "Wed": "Wednesday", "Thu": "Thursday", "Fri": "Friday", "Sat": "Saturday"}
PORTS = ["Arnholm", "Vik", "Saltby", "Torsund", "Lunden", "Hove"]
# Each tool with the certificate that it may need.
TOOLS = {
    "angle grinder": "grinding", "band saw": "sawing", "heat gun": "hot work", "wood lathe": "turning",
    "nail gun": "framing", "belt sander": "sanding", "drill press": "drilling", "router": "milling",
}
BREADS = ["rye loaf", "plum tart", "seed roll", "almond bun", "cheese twist", "spelt bread"]


# Library


def library(draw, person, **held):
    titles, ids, (member,) = draw.two(TITLES), draw.ids("b"), draw.ids("m", 1)
    books = {ids[0]: {"title": titles[0]}, ids[1]: {"title": titles[1]}}
    members, today = {member: {"name": person, **held}}, draw.randint(5, 60)
    state = {"books": shuffled(draw, books), "members": members, "today": today}
    return state, titles, ids, member


def library_lend(draw, person):
    state, titles, ids, member = library(draw, person)
    text = draw.choice(["{p} would like to borrow {t}.", "Please lend {t} to {p}.", "{p} is here to take {t} home."])
    return Part("Library", state, text.format(p=person, t=titles[0]), [
        ("find_books", {"text": titles[0]}),
        ("find_member", {"name": person}),
        ("lend", {"book_id": ids[0], "member_id": member}),
    ])


def library_fine(draw, person):
    state, _, _, member = library(draw, person, fine=draw.randint(20, 45) * 10)
    cents = draw.randint(1, 19) * 10
    text = draw.choice(["{p} pays {c} cents of the library fine.", "Enter {c} cents of library fine that {p} paid."])
    return Part("Library", state, text.format(p=person, c=cents), [
        ("find_member", {"name": person}),
        ("pay_fine", {"member_id": member, "cents": cents}),
    ])


def library_loan(draw, person):
    state, titles, ids, member = library(draw, person)
    loan = f"L{draw.randint(2, 9)}"
    state["loans"] = {loan: {"book_id": ids[0], "member_id": member, "due": state["today"] + draw.randint(-4, 9)}}
    late = state["loans"][loan]["due"] < state["today"]
    tool = "give_back" if late else draw.choice(["give_back", "renew"])
    text = {
        "give_back": ["{p} has brought {t} back.", "Take {t} back from {p}."],
        "renew": ["{p} wants to keep {t} longer; renew the loan.", "Renew {t} for {p}."],
    }[tool]
    return Part("Library", state, draw.choice(text).format(p=person, t=titles[0]), [
        ("find_member", {"name": person}),
        ("list_loans", {"member_id": member}),
        (tool, {"loan_id": loan}),
    ])


# Gym


def gym(draw, person, credits):
    names, ids, (member,), day = draw.two(COURSES), draw.ids("c"), draw.ids("m", 1), draw.choice(list(DAYS))
    hours = draw.sample(range(7, 21), 2)
    classes = {
        key: {"name": name, "day": day, "start": f"{hour:02}:{draw.choice(['00', '30'])}", "places": draw.randint(3, 9)}
        for key, name, hour in zip(ids, names, hours)
    }
    state = {"classes": shuffled(draw, classes), "members": {member: {"name": person, "credits": credits}}}
    return state, names[0], ids[0], member, day


def gym_book(draw, person):
    state, name, course, member, day = gym(draw, person, draw.randint(1, 5))
    text = draw.choice(["Book {p} into {n} at the gym on {d}.", "{p} wants a place in the {n} class on {d}."])
    return Part("Gym", state, text.format(p=person, n=name, d=DAYS[day]), [
        ("list_classes", {"day": day}),
        ("find_member", {"name": person}),
        ("book_class", {"class_id": course, "member_id": member}),
    ])


def gym_credits_and_book(draw, person):
    state, name, course, member, day = gym(draw, person, 0)
    count = draw.randint(2, 12)
    text = draw.choice(["{p} buys {c} gym credits and books {n} on {d}.", "Sell {p} {c} gym credits; book {n} on {d}."])
    return Part("Gym", state, text.format(p=person, n=name, d=DAYS[day], c=count), [
        ("find_member", {"name": person}),
        ("add_credits", {"member_id": member, "count": count}),
        ("list_classes", {"day": day}),
        ("book_class", {"class_id": course, "member_id": member}),
    ])


def gym_credits(draw, person):
    state, _, _, member, _ = gym(draw, person, draw.randint(0, 3))
    count = draw.randint(2, 20)
    text = draw.choice(["Sell {c} gym credits to {p}.", "{p} pays for {c} more classes at the gym."])
    return Part("Gym", state, text.format(p=person, c=count), [
        ("find_member", {"name": person}),
        ("add_credits", {"member_id": member, "count": count}),
    ])


# Ferry


def ferry(draw):
    (origin, destination), ids, hours = draw.two(PORTS), draw.ids("s"), draw.sample(range(7, 20), 2)
    route = {"origin": origin, "destination": destination}
    sailings = {
        key: {**route, "departs": f"{hour:02}:{draw.choice(['00', '20', '45'])}", "fare": draw.randint(8, 20) * 100}
        for key, hour in zip(ids, hours)
    }
    return {"sailings": shuffled(draw, sailings)}, route, ids


def ferry_book(draw, person):
    state, route, ids = ferry(draw)
    people, vehicle = draw.randint(2, 5), draw.choice(["none", "bicycle", "car", "van"])
    brought = "on foot" if vehicle == "none" else f"with a {vehicle}"
    text = draw.choice([
        "Book the {t} ferry from {origin} to {destination} for {p}: {n} passengers, {v}.",
        "{p} takes the ferry from {origin} to {destination} at {t}, {n} passengers in all, {v}. Book it.",
    ])
    time = state["sailings"][ids[0]]["departs"]
    arguments = {"sailing_id": ids[0], "name": person, "passengers": people}
    if vehicle != "none":
        arguments["vehicle"] = vehicle
    return Part("Ferry", state, text.format(t=time, p=person, n=people, v=brought, **route), [
        ("find_sailings", route),
        ("book", arguments),
    ])


def ferry_booked(draw, person):
    state, route, ids = ferry(draw)
    people, booking = draw.randint(1, 4), f"F{draw.randint(2, 9)}"
    paid = people * state["sailings"][ids[0]]["fare"]
    state["bookings"] = {booking: {"sailing_id": ids[0], "name": person, "passengers": people, "paid": paid}}
    if draw.random() < 0.5:
        text = draw.choice(["Cancel the ferry booking of {p}.", "{p} cannot travel; cancel the ferry."])
        text = text.format(p=person)
        calls = [("find_bookings", {"name": person}), ("cancel_booking", {"booking_id": booking})]
    else:
        time = state["sailings"][ids[1]]["departs"]
        text = f"Move the booking of {person} from {route['origin']} to {route['destination']} to the {time} ferry."
        calls = [
            ("find_bookings", {"name": person}),
            ("find_sailings", route),
            ("move_booking", {"booking_id": booking, "sailing_id": ids[1]}),
        ]
    return Part("Ferry", state, text, calls)


# ToolShed


def shed(draw, person, **held):
    names, ids, (user,) = draw.two(TOOLS), draw.ids("t"), draw.ids("u", 1)
    tools = {key: {"name": name, "deposit": draw.randint(5, 40) * 100} for key, name in zip(ids, names)}
    return {"tools": shuffled(draw, tools), "people": {user: {"name": person, **held}}}, names[0], ids[0], user


def shed_borrow(draw, person):
    state, name, tool, user = shed(draw, person, balance=draw.randint(40, 90) * 100)
    text = draw.choice(["{p} wants to borrow the {n}.", "Lend the {n} to {p}.", "Hand the {n} out to {p}."])
    return Part("ToolShed", state, text.format(p=person, n=name), [
        ("find_tools", {"text": name}),
        ("find_person", {"name": person}),
        ("borrow", {"tool_id": tool, "person_id": user}),
    ])


def shed_pay_and_borrow(draw, person):
    state, name, tool, user = shed(draw, person)
    cents = state["tools"][tool]["deposit"] + draw.randint(0, 9) * 100
    text = draw.choice(["{p} pays in {c} cents and takes the {n}.", "Pay in {c} cents for {p} and lend out the {n}."])
    return Part("ToolShed", state, text.format(p=person, n=name, c=cents), [
        ("find_person", {"name": person}),
        ("pay_in", {"person_id": user, "cents": cents}),
        ("find_tools", {"text": name}),
        ("borrow", {"tool_id": tool, "person_id": user}),
    ])


def shed_return(draw, person):
    state, name, tool, user = shed(draw, person)
    state["tools"][tool]["holder"] = user
    broken = draw.random() < 0.5
    text = "{p} brings the {n} back, and it is broken." if broken else "{p} brings the {n} back in good order."
    return Part("ToolShed", state, text.format(p=person, n=name), [
        ("find_tools", {"text": name}),
        ("bring_back", {"tool_id": tool, "broken": True} if broken else {"tool_id": tool}),
    ])


def shed_certify(draw, person):
    state, name, tool, user = shed(draw, person)
    word = TOOLS[name]
    state["tools"][tool]["certificate"] = word
    text = draw.choice(["{p} has passed the test in {w}; certify that.", "Give {p} the certificate {w}."])
    return Part("ToolShed", state, text.format(p=person, w=word), [
        ("find_person", {"name": person}),
        ("certify", {"person_id": user, "certificate": word}),
    ])


# Bakery


def bakery(draw):
    names, ids, today = draw.two(BREADS), draw.ids("k"), draw.randint(1, 30)
    products = {key: {"name": name, "price": draw.randint(12, 60) * 10} for key, name in zip(ids, names)}
    return {"products": shuffled(draw, products), "today": today}, names, ids


def bakery_order(draw, person):
    state, names, ids = bakery(draw)
    number, count, day = draw.randint(1, 20), draw.randint(2, 30), state["today"] + draw.randint(1, 7)
    state["next_order"] = number
    text = draw.choice(["{p} orders {c} pieces of {n} for day {d}.", "Bake {c} times {n} for {p}, for day {d}."])
    return Part("Bakery", state, text.format(p=person, c=count, n=names[0], d=day), [
        ("find_products", {"text": names[0]}),
        ("open_order", {"customer": person, "day": day}),
        ("set_item", {"order_id": f"O{number}", "product_id": ids[0], "count": count}),
    ])


def bakery_ordered(draw, person):
    state, names, ids = bakery(draw)
    order, count = f"O{draw.randint(2, 20)}", draw.randint(2, 20)
    action = draw.choice(["pay", "cancel", "hand", "change"])
    total = count * state["products"][ids[0]]["price"]
    state["orders"] = {order: {"customer": person, "day": state["today"] + 3, "items": {ids[0]: count}}}
    found = ("find_orders", {"customer": person})
    if action == "pay":
        cents = draw.randint(1, total // 10) * 10
        return Part("Bakery", state, f"{person} pays {cents} cents of the bakery order.", [
            found,
            ("pay", {"order_id": order, "cents": cents}),
        ])
    if action == "cancel":
        return Part("Bakery", state, f"Cancel what {person} ordered at the bakery.", [
            found,
            ("cancel_order", {"order_id": order}),
        ])
    if action == "hand":
        state["orders"][order].update(day=state["today"], paid=total)
        return Part("Bakery", state, f"{person} is here to fetch today's bread; hand the order over.", [
            found,
            ("hand_over", {"order_id": order}),
        ])
    more = draw.randint(2, 20)
    return Part("Bakery", state, f"Add {more} pieces of {names[1]} to what {person} ordered.", [
        found,
        ("find_products", {"text": names[1]}),
        ("set_item", {"order_id": order, "product_id": ids[1], "count": more}),
    ])


# One call


def by_number(draw, person):
    """What a person asks for with the number at hand: no looking up."""
    part = draw.choice([library_loan, ferry_booked, bakery_ordered])(draw, person)
    tool, arguments = part.calls[-1]
    text = {
        "give_back": "Loan {loan_id} of {p} is back; take it.",
        "renew": "Renew loan {loan_id} of {p}.",
        "cancel_booking": "Cancel ferry booking {booking_id} of {p}.",
        "move_booking": "Move ferry booking {booking_id} of {p} to sailing {sailing_id}.",
        "pay": "{p} pays {cents} cents of bakery order {order_id}.",
        "cancel_order": "Cancel bakery order {order_id} of {p}.",
        "hand_over": "Hand bakery order {order_id} over to {p}.",
        "set_item": "Bakery order {order_id} of {p} shall have {count} pieces of product {product_id}.",
    }[tool]
    return part._replace(text=text.format(p=person, **arguments), calls=[(tool, arguments)])


def question(draw, person):
    """A question whose answer decides what is to be done: one that changed nothing would be solved by doing nothing."""
    if draw.random() < 0.5:
        state, titles, ids, member = library(draw, person)
        looked, lent = [("find_books", {"text": titles[0]})], ids[0]
        if draw.random() < 0.5:
            state["books"][ids[0]]["copies"] = 0
            looked, lent = [*looked, ("find_books", {"text": titles[1]})], ids[1]
        text = f"{person} would like {titles[0]}, or {titles[1]} if no copy of it is free. Lend one of them."
        return Part("Library", state, text, [
            *looked,
            ("find_member", {"name": person}),
            ("lend", {"book_id": lent, "member_id": member}),
        ])
    state, _, _, member, day = gym(draw, person, draw.randint(1, 5))
    first = min(state["classes"], key=lambda key: state["classes"][key]["start"])
    text = f"Which gym class starts first on {DAYS[day]}? {person} wants a place in that one."
    return Part("Gym", state, text, [
        ("list_classes", {"day": day}),
        ("find_member", {"name": person}),
        ("book_class", {"class_id": first, "member_id": member}),
    ])


TEMPLATES = [
    library_lend, library_fine, library_loan, gym_book, gym_credits_and_book, gym_credits, ferry_book, ferry_booked,
    shed_borrow, shed_pay_and_borrow, shed_return, shed_certify, bakery_order, bakery_ordered,
    by_number, by_number, question,
]
