use crate::instruction::{CLOSING, first_person, message};

#[test]
fn a_user_says_what_the_instruction_says_of_them() {
    for (told, said) in [
        (
            "Your name is Ann Lee and your zip code is 12345. You are shy, calm. Cancel order #W1. ",
            "My name is Ann Lee and my zip code is 12345. I am shy, calm. Cancel order #W1.",
        ),
        (
            "You're late, and you've lost yours.",
            "I am late, and I've lost mine.",
        ),
        (
            "You’ll see what you’d do yourself.",
            "I'll see what I'd do myself.",
        ),
        (
            "If they ask you why, say that you want it.",
            "If they ask me why, say that I want it.",
        ),
        (
            "Let them help you, or give you a coupon.",
            "Let them help me, or give me a coupon.",
        ),
        (
            "Keep the lamp (you like it) as you were told.",
            "Keep the lamp (I like it) as I was told.",
        ),
        (
            "How sure are you that you aren't wrong?",
            "How sure am I that I am not wrong?",
        ),
        (
            "The items are yours; they are fine.",
            "The items are mine; they are fine.",
        ),
    ] {
        assert_eq!(first_person(told), said);
    }
}

#[test]
fn data_and_addresses_are_left_alone() {
    for told in [
        "Write to your.name@example.com or you@example.com, #you_1.",
        "Change it to {'address1': 'Your Way', 'city': 'you are here'} now.",
        "A young yourt, bayou {you {your} you}.",
    ] {
        assert_eq!(first_person(told), told);
    }
    assert_eq!(first_person("{you} You want {your}"), "{you} I want {your}");
}

#[test]
fn the_message_ends_with_the_consent_that_the_policy_asks_for() {
    assert_eq!(
        message("You want tea."),
        format!("I want tea.\n\n{CLOSING}")
    );
    assert_eq!(message(""), CLOSING);
}
