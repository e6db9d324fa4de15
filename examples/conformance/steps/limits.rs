//! How many there are of what, and what is granted. Everything that is made is destroyed before the step ends.

use crate::end::{Broken, End};
use crate::raw::{Answer, Domain, Pair, Queue, Shape};
use rdma_sys as sys;
use std::rc::Rc;

/// More than any report has.
const ENOUGH: usize = 16;

fn broken(call: &str) -> impl Fn(Answer) -> Broken + '_ {
    move |answer| Broken::Here(format!("{call}: {answer}"))
}

pub(crate) fn run(end: &mut End) -> Result<(), Broken> {
    let queue = Queue::new(&end.opened, 64).map_err(broken("ibv_create_cq"))?;
    types(end, &queue);
    grants(end, &queue);
    queue_pairs(end, &queue);
    drop(queue);
    queues(end);
    Ok(())
}

/// Makes one after the other until one is refused. Returns how many there were.
fn until_refused<T>(make: impl Fn() -> Result<T, Answer>) -> (Vec<T>, Option<Answer>) {
    let mut all = Vec::new();
    while all.len() < ENOUGH {
        match make() {
            Ok(one) => all.push(one),
            Err(answer) => return (all, Some(answer)),
        }
    }
    (all, None)
}

fn count<T>(end: &mut End, id: &str, what: &str, expected: usize, errno: i32, made: (Vec<T>, Option<Answer>)) {
    let (all, refusal) = made;
    let number = if refusal.is_some() { all.len().to_string() } else { format!("{} and more", all.len()) };
    end.equal(id, &format!("{what} that can be made"), expected.to_string(), number);
    match refusal {
        Some(answer) => end.answers(id, &format!("one more of the {what}"), Some(errno), answer),
        None => end.fact(id, &format!("one more of the {what}"), "a refusal", "success", false),
    }
}

fn queue_pairs(end: &mut End, queue: &Rc<Queue>) {
    let domain = end.domain.clone();
    let made =
        until_refused(|| Pair::new(&domain, queue, Shape { depth: 1, ..Shape::default() }).map(|(pair, _)| pair));
    let numbers: Vec<_> = made.0.iter().map(|pair| format!("{:#x}", pair.number())).collect();
    end.question("Q04", "the numbers of queue pairs, one after the other", numbers.join(", "));
    let paths = made.0.iter().all(|pair| pair.number() % 256 == 0);
    end.fact(
        "F230",
        "numbers of queue pairs",
        "multiples of 256",
        if paths { "multiples of 256" } else { "others" },
        paths,
    );
    count(end, "F301", "queue pairs", 10, libc::EBUSY, made);
}

fn types(end: &mut End, queue: &Rc<Queue>) {
    let domain = end.domain.clone();
    let make = |shape: Shape| Pair::new(&domain, queue, shape).map(|(pair, _)| pair);
    for (kind, name) in [(sys::ibv_qp_type::IBV_QPT_RC, "RC"), (sys::ibv_qp_type::IBV_QPT_UD, "UD")] {
        refused(end, "F302", name, libc::EOPNOTSUPP, make(Shape { kind, ..Shape::default() }));
    }
    refused(end, "F303", "two scatter elements", libc::EINVAL, make(Shape { elements: 2, ..Shape::default() }));
    let inline = make(Shape { inline: 32, ..Shape::default() });
    let granted = match &inline {
        Ok(pair) => pair.query().map_or_else(|answer| answer.to_string(), |(a, _)| a.cap.max_inline_data.to_string()),
        Err(answer) => answer.to_string(),
    };
    end.question("Q05", "inline data that is granted when 32 bytes are asked for", granted);
}

fn refused(end: &mut End, id: &str, what: &str, errno: i32, made: Result<Pair, Answer>) {
    match made {
        Ok(_) => end.fact(id, what, rdma::Errno::from_raw(errno).name(), "success", false),
        Err(answer) => end.answers(id, what, Some(errno), answer),
    }
}

fn grants(end: &mut End, queue: &Rc<Queue>) {
    let domain = end.domain.clone();
    for (asked, expected) in [(1, 1023), (256, 1023), (1023, 1023), (1024, 2047), (2048, 4095), (4095, 4095)] {
        let what = format!("the depth that is granted for {asked}");
        match Pair::new(&domain, queue, Shape { depth: asked, ..Shape::default() }) {
            Ok((pair, written)) => match pair.query() {
                Ok((attributes, _)) => {
                    let (send, receive) = (attributes.cap.max_send_wr, attributes.cap.max_recv_wr);
                    end.equal("F311", &what, format!("{expected} and {expected}"), format!("{send} and {receive}"));
                    let text = format!("{} and {}", written.max_send_wr, written.max_recv_wr);
                    end.equal("F312", &format!("written back for {asked}"), format!("{asked} and {asked}"), text);
                }
                Err(answer) => end.answers("F311", &what, None, answer),
            },
            Err(answer) => end.answers("F311", &what, None, answer),
        }
    }
    let beyond = Pair::new(&domain, queue, Shape { depth: 4096, ..Shape::default() });
    refused(end, "F311", "a depth of 4096", libc::EINVAL, beyond.map(|(pair, _)| pair));
}

fn queues(end: &mut End) {
    let opened = end.opened.clone();
    for entries in [1, 4096] {
        let answer = Queue::new(&opened, entries).err().unwrap_or(Answer::Number(0, 0));
        end.answers("F306", &format!("a completion queue of {entries}"), None, answer);
    }
    match Queue::new(&opened, 4097) {
        Ok(_) => end.fact("F306", "a completion queue of 4097", "EINVAL", "success", false),
        Err(answer) => end.answers("F306", "a completion queue of 4097", Some(libc::EINVAL), answer),
    }
    let made = until_refused(|| Queue::new(&opened, 1));
    count(end, "F305", "completion queues", 11, libc::ENOMEM, made);
}

pub(crate) fn domains(end: &mut End) -> Result<(), Broken> {
    let opened = end.opened.clone();
    let made = until_refused(|| Domain::new(&opened));
    // One has been there from the start.
    count(end, "F305", "protection domains besides the first", 10, libc::ENOMEM, made);
    Ok(())
}
