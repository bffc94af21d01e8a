//! An inner slow start over several paths has gaps between its acknowledgements; other ones stay as they are.

use crate::support;
use hawser_core::drops::DropReason;
use std::time::Duration;
use support::world::{LOCAL, REMOTE, World, ms};

#[test]
fn only_where_a_bond_of_some_length_splits_flows_acknowledgements_have_gaps() {
    for (name, links, delay, thinned) in
        [("two paths", 2, ms(20), true), ("one path", 1, ms(20), false), ("two short paths", 2, ms(5), false)]
    {
        let mut world = World::new(&[0, 0][..links], 1);
        world.delay = delay;
        let mut world = world.settled();
        world.portals[REMOTE].inbox.0.clear();
        for number in 1..=400 {
            world.acknowledge(number);
            world.run(Duration::from_micros(500));
        }
        world.run(ms(100));
        let came = &world.portals[REMOTE].inbox.0;
        let newest = came.iter().map(|packet| u32::from_be_bytes(*packet[28..].first_chunk().expect("a header"))).max();
        let filtered = world.dropped(LOCAL, DropReason::AckFiltered) as usize;
        assert_eq!((newest, came.len() + filtered), (Some(400), 400), "{name}");
        assert_eq!(came.len() < 100, thinned, "{name}: {}", came.len());
    }
}
