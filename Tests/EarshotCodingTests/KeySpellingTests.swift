import Foundation
import Testing

@testable import EarshotCoding

/// Every property name comes back from snake case.
@Suite struct KeySpellingTests {
    static let coding = MessageCoding(keys: .snakeCase)

    struct Build: Codable, Equatable {
        var buildID: String
        var userURL: URL?
        var URL: Int
        var snake_name: Bool
        var _privateID: [Inner]
        var byName: [String: Inner] = [:]

        struct Inner: Codable, Equatable {
            var ipV6Address: String?
            var getURLs: Int
        }
    }

    static let build = Build(
        buildID: "7", userURL: Foundation.URL(string: "http://a/b"), URL: 3, snake_name: true,
        _privateID: [.init(ipV6Address: "::1", getURLs: 2)],
        byName: ["someID": .init(getURLs: 1)])

    @Test func acronymsComeBackByTheSpellingsOfBefore() throws {
        let json = try Self.coding.encode(Self.build)
        #expect(
            String(decoding: json, as: UTF8.self)
                == #"{"_private_id":[{"get_ur_ls":2,"ip_v6_address":"::1"}],"build_id":"7","by_name":{"someID":{"get_ur_ls":1}},"#
                + #""snake_name":true,"u_rl":3,"user_url":"http://a/b"}"#)
        #expect(try Self.coding.decode(Build.self, from: json) == Self.build)
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        #expect(try Self.coding.decode(Build.self, from: encoder.encode(Self.build)) == Self.build)
    }

    /// Names of one type that were written alike, of which only one is there.
    @Test func namesOfOneTypeDoNotMix() throws {
        struct Alike: Codable, Equatable {
            var buildId: Int?
            var buildID: Int?
            var BuildID: Int?
            var build_id: Int?
            var build_ID: Int?
        }
        for alike in [
            Alike(buildId: 1), Alike(buildID: 1), Alike(BuildID: 1), Alike(build_id: 1), Alike(build_ID: 1), Alike(),
            Alike(buildId: 1, buildID: 2, BuildID: 3, build_id: 4, build_ID: 5),
        ] {
            #expect(try Self.coding.decode(Alike.self, from: Self.coding.encode(alike)) == alike)
        }
        #expect(String(decoding: try Self.coding.encode(Alike(buildID: 1)), as: UTF8.self) == #"{"`buildID`":1}"#)
    }

    /// A name that no capitalization of words gives was written in a spelling that earlier versions did not read, and is read by it now.
    @Test func namesOfEarlierDocumentsAreRead() throws {
        struct Odd: Codable, Equatable { var a_B: Int }
        #expect(try Self.coding.decode(Odd.self, from: #"{"a__b":1}"#.utf8) == Odd(a_B: 1))
        #expect(try Self.coding.decode(Odd.self, from: Self.coding.encode(Odd(a_B: 2))) == Odd(a_B: 2))
    }

    private static let letters = Array("abcxyzABCIDURLé_0129ÀßΣσıİǅ漢`")
    private static func name(_ random: inout SystemRandomNumberGenerator) -> String {
        String((0..<Int.random(in: 1...14, using: &random)).compactMap { _ in Self.letters.randomElement(using: &random) })
    }

    /// Any names as keys of one object. All stand in it at once, so that none may take the place of another.
    @Test func generatedNamesComeBack() throws {
        struct Name: CodingKey, Hashable, Codable, CodingKeyRepresentable {
            var stringValue: String
            var intValue: Int? { nil }
            var codingKey: any CodingKey { self }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
            init?(codingKey: some CodingKey) { self.stringValue = codingKey.stringValue }
        }
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let names = (0..<50).map { _ in Name(stringValue: Self.name(&random)) }
            let object = Dictionary(names.enumerated().map { ($1, $0) }) { one, _ in one }
            #expect(try Self.coding.decode([Name: Int].self, from: Self.coding.encode(object)) == object)
        }
    }

    /// A type with one property of that name.
    private enum Generated {
        @TaskLocal static var name = ""
        struct Key: CodingKey {
            var stringValue: String { Generated.name }
            var intValue: Int? { nil }
            init?(stringValue: String) { guard stringValue == Generated.name else { return nil } }
            init?(intValue: Int) { nil }
        }
        struct Value: Codable, Equatable {
            var value = 7
            init() {}
            init(from decoder: any Decoder) throws {
                let fields = try decoder.container(keyedBy: Key.self)
                guard let key = fields.allKeys.first else { throw CancellationError() }
                self.value = try fields.decode(Int.self, forKey: key)
            }
            func encode(to encoder: any Encoder) throws {
                var fields = encoder.container(keyedBy: Key.self)
                guard let key = Key(stringValue: Generated.name) else { return }
                try fields.encode(self.value, forKey: key)
            }
        }
    }

    @Test func aGeneratedPropertyComesBack() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5_000 {
            try Generated.$name.withValue(Self.name(&random)) {
                let json = try Self.coding.encode(Generated.Value())
                #expect(try Self.coding.decode(Generated.Value.self, from: json) == Generated.Value(), "\(Generated.name)")
            }
        }
    }

    /// At most six words are compared in every capitalization: a longer name with an acronym is written as declared.
    @Test func longNamesWithAcronyms() throws {
        struct Long: Codable, Equatable {
            var aBuildOfTheLastID = 1
            var theBuildOfTheVeryLastID = 2
            var theBuildOfTheVeryLastOne = 3
        }
        #expect(
            String(decoding: try Self.coding.encode(Long()), as: UTF8.self)
                == #"{"`theBuildOfTheVeryLastID`":2,"a_build_of_the_last_id":1,"the_build_of_the_very_last_one":3}"#)
        #expect(try Self.coding.decode(Long.self, from: Self.coding.encode(Long())) == Long())
    }

    @Test func theSpellingIsFoundations() throws {
        struct Key: CodingKey {
            var stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
        struct Value: Encodable {
            let name: String
            func encode(to encoder: any Encoder) throws {
                var fields = encoder.container(keyedBy: Key.self)
                try fields.encode(1, forKey: Key(stringValue: self.name))
            }
        }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let name = Self.name(&random)
            let written = try JSONDecoder().decode([String: Int].self, from: encoder.encode(Value(name: name)))
            #expect(written.keys.first == KeySpelling.snakeCase(name), "\(name)")
        }
    }
}
