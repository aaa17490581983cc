package import APIDocument
import Foundation

/// The laws that the values of every library's models obey: equality is an equivalence, equal values hash equally, and decoding restores
/// every encoded field. Each law returns the faults in words, and none if it holds.
package struct ValueLaws<Value: Codable & Hashable> {
    private let encode: (Value) throws -> [UInt8]
    private let decode: ([UInt8]) throws -> Value
    private let compared: (JSONValue) -> JSONValue

    /// Creates the laws from functions that encode and decode a value. `compared` returns the part of the JSON that equality compares, by
    /// default all of it.
    package init(
        encode: @escaping (Value) throws -> [UInt8], decode: @escaping ([UInt8]) throws -> Value,
        compared: @escaping (JSONValue) -> JSONValue = { $0 }
    ) {
        self.encode = encode
        self.decode = decode
        self.compared = compared
    }

    private func json(_ value: Value) throws -> JSONValue { try JSONValue(parsing: try self.encode(value)) }

    /// Over three values, and copies of them that share nothing with them.
    package func equivalence(_ values: [Value]) throws -> [String] {
        let all = try values + values.map { try self.decode(try self.encode($0)) }
        let compared = try all.map { self.compared(try self.json($0)) }
        var faults: [String] = []
        for (one, json) in zip(all, compared) {
            if one != one { faults.append("not equal to itself: \(one)") }
            for (other, otherJSON) in zip(all, compared) {
                let isEqual = one == other
                if isEqual != (other == one) { faults.append("equal one way only: \(one), \(other)") }
                if isEqual != (json == otherJSON) { faults.append("\(isEqual ? "equal" : "not equal"): \(one), \(other)") }
                guard isEqual else { continue }
                if one.hashValue != other.hashValue || Set([one, other]).count != 1 { faults.append("hashes differ: \(one), \(other)") }
                for third in all where other == third && one != third { faults.append("not transitive: \(one), \(other), \(third)") }
            }
        }
        return faults
    }

    /// Returns the faults of a round trip: a decoded value is as it was written in every part, also in parts that equality ignores.
    package func roundTrip(_ value: Value) throws -> [String] {
        let bytes = try self.encode(value)
        let again = try self.decode(bytes)
        var faults = Parts.differences(value, again).map { "\($0) is not what was written" }
        if again != value { faults.append("not equal to what was written: \(again)") }
        if again.hashValue != value.hashValue { faults.append("hashes otherwise than what was written: \(again)") }
        if try self.encode(again) != bytes { faults.append("is written otherwise the second time: \(again)") }
        if bytes.contains(UInt8(ascii: "\n")) { faults.append("has a line break") }
        return faults
    }

    /// Values that differ in one field are not equal, unless equality ignores that field.
    package func fields(_ value: Value, _ other: Value) throws -> [String] {
        let (json, otherJSON) = (try self.json(value), try self.json(other))
        return try Set(json.members.keys).union(otherJSON.members.keys).sorted().flatMap { key -> [String] in
            let mixed = json.replacing([.key(key)], with: otherJSON[key])
            guard mixed != json, let changed = try? self.decode(try mixed.bytes()) else { return [] }
            // A part that belongs to another kind of value is not read.
            let isSame = self.compared(try self.json(changed)) == self.compared(json)
            return try (changed == value) == isSame ? self.roundTrip(changed) : ["`\(key)` \(isSame ? "counts" : "does not count")"]
        }
    }

    /// An unknown field changes nothing in any object, except in objects whose keys are a program's or a peer's own.
    package func unknownFields(_ value: Value, own: Set<String> = []) throws -> [String] {
        let json = try self.json(value)
        return try json.places().filter { place, part in
            guard case .object = part else { return false }
            if case .key(let key)? = place.last { return !own.contains(key) }
            return true
        }.flatMap { place, _ -> [String] in
            let more = json.replacing(place + [.key("moonPhase")], with: .array([.object(["x": .null])]))
            let read = try self.decode(try more.bytes())
            return Parts.differences(value, read).map { "\($0) is another with an unknown field" }
        }
    }

    /// Puts other values into every place. Each result is decoded or refused, and a decoded value obeys the laws like any other. Adds the
    /// number of refusals to `refused`.
    package func replacements(_ value: Value, refused: inout Int) throws -> [String] {
        let json = try self.json(value)
        let long = String(repeating: "x", count: 5000)
        let replacements: [JSONValue?] = [
            nil, .null, .bool(true), .number(-1), .number(0.5), .number(Decimal(UInt64.max)), .number(1e30), .string(""),
            .string("%"), .string(long), .string("brand-new"), .array([]), .array([.array([])]), .object([:]), .object(["_0": .null]),
        ]
        var faults: [String] = []
        for (place, _) in json.places() where !place.isEmpty {
            for replacement in replacements {
                let bytes = try json.replacing(place, with: replacement).bytes()
                guard let read = try? self.decode(bytes) else {
                    refused += 1
                    continue
                }
                faults += try self.roundTrip(read)
            }
        }
        return faults
    }
}

extension JSONValue {
    /// Every part of the document and the way to it, the whole first.
    package func places() -> [(place: [Step], value: JSONValue)] {
        let members = self.members.keys.sorted().map { (Step.key($0), self.members[$0] ?? .null) }
        let elements = self.elements.enumerated().map { (Step.index($0), $1) }
        return [([], self)] + (members + elements).flatMap { step, part in part.places().map { ([step] + $0.place, $0.value) } }
    }
}
