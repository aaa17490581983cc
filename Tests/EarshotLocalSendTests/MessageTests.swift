import EarshotCore
import NIOCore
import Testing

@testable import EarshotLocalSend

@Suite struct MessageTests {
    private func info(_ json: String) throws -> DeviceInfo {
        try MessageCoding.decode(InfoMessage.self, from: ByteBuffer(string: json)).info
    }

    private func offer(_ json: String) throws -> DeviceOffer {
        try MessageCoding.decode(OfferMessage.self, from: ByteBuffer(string: json)).offer
    }

    private static let sender = #""alias":"phone","version":"2.1","fingerprint":"x","port":53317,"protocol":"https""#

    @Test func `a description has every field`() throws {
        let fingerprint = String(repeating: "aB", count: 32)
        let info = try self.info(
            """
            {"alias":"phone","version":"2.1","deviceModel":"Pixel","deviceType":"Mobile","fingerprint":"\(fingerprint)","port":53317,
             "protocol":"https","download":true,"announce":true,"later":{"unknown":[1]}}
            """)
        #expect(
            info
                == DeviceInfo(
                    alias: "phone", version: "2.1", model: "Pixel", kind: "mobile", fingerprint: fingerprint.lowercased(), port: 53317))
    }

    @Test func `optional fields may be absent or null`() throws {
        #expect(try self.info(#"{"alias":"a","version":"2.0"}"#) == DeviceInfo(alias: "a", version: "2.0", fingerprint: ""))
        #expect(
            try self.info(#"{"alias":"a","version":"2.0","deviceModel":null,"deviceType":null,"download":null,"fingerprint":null}"#)
                == DeviceInfo(alias: "a", version: "2.0", fingerprint: ""))
        #expect(try self.info(#"{"alias":"a","version":"1","protocol":"http","port":0}"#).isEncrypted == false)
    }

    @Test(arguments: [
        "", "[]", "null", "{}", "{\"alias\":\"a\"}", "{\"alias\":1,\"version\":\"2\"}", "{\"alias\":\"\",\"version\":\"2\"}",
        "{\"alias\":\"a\",\"version\":\"2\",\"port\":65536}", "{\"alias\":\"a\",\"version\":\"2\",\"port\":-1}",
        "{\"alias\":\"a\",\"version\":\"2\",\"port\":1.5}", "{\"alias\":\"a\",\"version\":\"2\",\"protocol\":\"HTTPS\"}",
        "{\"alias\":\"a\",\"version\":\"2\",\"download\":\"no\"}", "{\"alias\":\"a\",\"version\":\"2\"", "\u{0}\u{1}",
    ])
    func `a malformed description is refused`(_ json: String) {
        #expect(throws: (any Error).self) { try self.info(json) }
    }

    @Test(arguments: ["[", "{\"a\":"])
    func `a deep description is refused`(_ opening: String) {
        #expect(throws: (any Error).self) { try self.info(String(repeating: opening, count: 100_000)) }
    }

    @Test func `an alias is cut to 63 bytes between characters`() throws {
        func alias(_ text: String) throws -> String { try self.info("{\"alias\":\"\(text)\",\"version\":\"2\"}").alias }
        let longest = String(repeating: "a", count: EarshotLimits.deviceAliasLength)
        #expect(try alias(longest) == longest)
        #expect(try alias(longest + "a") == longest)
        let beforeLast = String(repeating: "a", count: EarshotLimits.deviceAliasLength - 1)
        #expect(try alias(beforeLast + "é") == beforeLast)
        // A family of 25 bytes is one character.
        let family = "👨‍👩‍👧‍👦"
        #expect(try alias(family + family + family) == family + family)
        // One character that is longer than the limit.
        let stacked = "a" + String(repeating: "\u{301}", count: 100)
        #expect(try alias(stacked).utf8.count == EarshotLimits.deviceAliasLength)
    }

    @Test func `our own description is as LocalSend expects it`() throws {
        let message = InfoMessage(name: "alice", fingerprint: "AB", port: 1234, announce: true)
        #expect(
            String(buffer: MessageCoding.encode(message)) == """
                {"alias":"alice","announce":true,"deviceModel":"Earshot","deviceType":"headless","download":false,"fingerprint":"AB",\
                "port":1234,"protocol":"https","version":"2.2"}
                """)
    }

    // MARK: Offers

    @Test func `an offer has its files ordered by name`() throws {
        let digest = String(repeating: "0F", count: 32)
        let offer = try self.offer(
            """
            {"info":{\(Self.sender)},"files":{
              "2":{"id":"other","fileName":"b/c.txt","size":18446744073709551615,"fileType":"text/plain","sha256":"\(digest)",
                   "preview":"hello","metadata":{"modified":"2026-08-01T10:20:30.456Z","accessed":null}},
              "1":{"id":"1","fileName":"a","size":0,"fileType":"image","metadata":{"modified":"yesterday"}}}}
            """)
        #expect(
            offer.files == [
                DeviceFile(id: "1", name: "a", size: 0, contentType: "image"),
                DeviceFile(
                    id: "2", name: "b/c.txt", size: .max, contentType: "text/plain", sha256: [UInt8](repeating: 15, count: 32),
                    preview: "hello", modified: WallTime(rfc3339: "2026-08-01T10:20:30.456Z")),
            ])
    }

    private func offer(files count: Int) -> String {
        let files = (0..<count).map { "\"\($0)\":{\"id\":\"\($0)\",\"fileName\":\"f\",\"size\":1,\"fileType\":\"x\"}" }
        return "{\"info\":{\(Self.sender)},\"files\":{\(files.joined(separator: ","))}}"
    }

    @Test func `an offer has at most 5,000 files`() throws {
        #expect(try self.offer(self.offer(files: EarshotLimits.deviceOfferFiles)).files.count == EarshotLimits.deviceOfferFiles)
        #expect(throws: DeviceRefusal.tooLarge) { try self.offer(self.offer(files: EarshotLimits.deviceOfferFiles + 1)) }
        #expect(throws: InvalidMessage.self) { try self.offer(self.offer(files: 0)) }
    }

    @Test func `a body has at most 320,000 marks outside of strings`() throws {
        func body(_ marks: Int) -> String { "{\(Self.sender),\"x\":[0\(String(repeating: ",0", count: marks))]}" }
        let own = MessageCoding.marks(in: ByteBuffer(string: body(0)))
        #expect(throws: Never.self) { try self.info(body(LocalSendLimits.jsonMarks - own)) }
        #expect(throws: DeviceRefusal.tooLarge) { try self.info(body(LocalSendLimits.jsonMarks - own + 1)) }
        #expect(MessageCoding.marks(in: ByteBuffer(string: #"{"a,:[{\"\\,":"\\",0:[,"#)) == 6)
    }

    @Test(arguments: [
        #"{"id":"1","fileName":"f","size":-1,"fileType":"x"}"#, #"{"id":"1","fileName":"f","size":18446744073709551616,"fileType":"x"}"#,
        #"{"id":"1","fileName":"f","size":"1","fileType":"x"}"#, #"{"id":"1","size":1,"fileType":"x"}"#,
        #"{"id":"1","fileName":"f","size":1,"fileType":"x","sha256":"00"}"#,
        #"{"id":"1","fileName":"f","size":1,"fileType":"x","sha256":"\#(String(repeating: "g", count: 64))"}"#, "null", "[]",
    ])
    func `a malformed file is refused`(_ file: String) {
        #expect(throws: (any Error).self) { try self.offer("{\"info\":{\(Self.sender)},\"files\":{\"1\":\(file)}}") }
    }

    @Test func `ids have a limit`() throws {
        func offer(_ id: String) throws -> DeviceOffer {
            try self.offer(
                "{\"info\":{\(Self.sender)},\"files\":{\"\(id)\":{\"id\":\"\",\"fileName\":\"f\",\"size\":1,\"fileType\":\"x\"}}}")
        }
        let longest = String(repeating: "i", count: LocalSendLimits.idBytes)
        #expect(try offer(longest).files.first?.id == longest)
        #expect(throws: InvalidMessage.self) { try offer(longest + "i") }
        #expect(throws: InvalidMessage.self) { try offer("") }
    }

    @Test func `an offer of ours can be read again`() throws {
        let file = DeviceFile(
            id: "7", name: "a/b", size: 3, contentType: "text/plain", sha256: [UInt8](repeating: 200, count: 32), preview: "é",
            modified: WallTime(milliseconds: 1_000))
        let message = OfferMessage(info: InfoMessage(name: "alice", fingerprint: "", port: 1), files: [file])
        let offer = try MessageCoding.decode(OfferMessage.self, from: MessageCoding.encode(message)).offer
        #expect(offer.files == [file])
    }

    @Test func `the answer to an offer names offered files only`() throws {
        func answer(_ json: String) throws -> DeviceOfferAnswer {
            try MessageCoding.decode(OfferAnswerMessage.self, from: ByteBuffer(string: json)).answer(to: ["1", "2"])
        }
        #expect(
            try answer(#"{"sessionId":"s","files":{"1":"t","9":"u"}}"#)
                == .upload(session: "s", tokens: [DeviceToken(file: "1", token: "t")]))
        #expect(try answer(#"{"sessionId":"s","files":{}}"#) == .nothingToSend)
        #expect(throws: InvalidMessage.self) { try answer(#"{"sessionId":"","files":{}}"#) }
        #expect(throws: InvalidMessage.self) {
            try answer("{\"sessionId\":\"s\",\"files\":{\"1\":\"\(String(repeating: "t", count: LocalSendLimits.idBytes + 1))\"}}")
        }
    }

    // MARK: Times

    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.5Z", 500), ("1970-01-01t00:00:00.123456789z", 123),
            ("1970-01-01 01:00:00+01:00", 0), ("1969-12-31T23:59:59.999Z", -1), ("2000-03-01T00:00:00-00:30", 951_870_600_000),
            ("2024-02-29T12:00:00.000Z", 1_709_208_000_000),
        ] as [(String, Int64)])
    func `a time with its zone is read`(_ text: String, _ milliseconds: Int64) {
        #expect(WallTime(rfc3339: text) == WallTime(milliseconds: milliseconds))
    }

    @Test(arguments: [
        "", "yesterday", "2026-08-01", "2026-08-01T10:20:30", "2026-08-01T10:20:30.Z", "2026-13-01T10:20:30Z", "2026-08-01T24:20:30Z",
        "2026-08-01T10:20:30+1:00", "2026-08-01T10:20:30+25:00", "2026-08-01T10:20:30.123456789123456789123456789Z", "2026_08-01T10:20:30Z",
    ])
    func `any other text is no time`(_ text: String) {
        #expect(WallTime(rfc3339: text) == nil)
    }
}
