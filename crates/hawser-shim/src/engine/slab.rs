//! Places with numbers, used again.

/// Things with numbers. Empty at first; a number may come again after its thing was taken out. One owner.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// The number that the next one will have.
    pub fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    pub fn insert(&mut self, thing: T) -> usize {
        let place = self.next();
        if self.free.pop().is_some() {
            self.places[place] = Some(thing);
        } else {
            self.places.push(Some(thing));
        }
        place
    }

    pub fn remove(&mut self, place: usize) -> Option<T> {
        let thing = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        Some(thing)
    }

    pub fn get(&self, place: usize) -> Option<&T> {
        self.places.get(place)?.as_ref()
    }

    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(place)?.as_mut()
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Numbers up to which there may be things.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> + Clone {
        self.places.iter().enumerate().filter_map(|(place, thing)| Some((place, thing.as_ref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(place, thing)| Some((place, thing.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_again_and_nothing_is_found_under_a_free_one() {
        let mut slab = Slab::default();
        assert_eq!((slab.next(), slab.insert('a'), slab.insert('b'), slab.len()), (0, 0, 1, 2));
        assert_eq!((slab.remove(0), slab.remove(0), slab.get(0), slab.len()), (Some('a'), None, None, 1));
        assert_eq!((slab.next(), slab.insert('c'), slab.places()), (0, 0, 2));
        assert_eq!(slab.iter().map(|(_, thing)| *thing).collect::<String>(), "cb");
    }
}
