import OrderedCollections

/// A table of rows in the order in which their keys were added. `add` and `remove` decide which rows there are; the subscript is for calls
/// of a row's methods in place.
struct RowTable<Key: Hashable & Sendable, Row: Sendable>: Sendable {
    private var rows: OrderedDictionary<Key, Row> = [:]

    var count: Int { self.rows.count }
    var keys: OrderedSet<Key> { self.rows.keys }
    var values: OrderedDictionary<Key, Row>.Values { self.rows.values }
    var elements: OrderedDictionary<Key, Row>.Elements { self.rows.elements }

    subscript(key: Key) -> Row? {
        get { self.rows[key] }
        _modify { yield &self.rows[key] }
    }

    /// Accesses the row of a key, and adds it if there is none.
    subscript(key: Key, default row: @autoclosure () -> Row) -> Row {
        get { self.rows[key, default: row()] }
        _modify { yield &self.rows[key, default: row()] }
    }

    /// Adds a row, and replaces any other of that key.
    mutating func add(_ row: Row, for key: Key) { self.rows[key] = row }

    mutating func remove(_ key: Key) -> Row? { self.rows.removeValue(forKey: key) }
}
