import Earshot
import EarshotClient
import Glibc
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import Testing

@testable import earshotd

@Suite struct RequestRulesTests {
    private func head(_ authority: String?, path: String? = "/v1/status", _ fields: HTTPFields = [:]) -> HTTPRequest {
        HTTPRequest(method: .get, scheme: "http", authority: authority, path: path, headerFields: fields)
    }

    @Test(arguments: ["localhost", "earshot", "LocalHost"]) func ourNamesPass(_ host: String) {
        #expect(RequestRules.fault(self.head(host)) == nil)
    }

    @Test(arguments: [nil, "", "evil.example", "localhost:80", "localhost.", "127.0.0.1", "localhost, evil", "earshot.local"] as [String?])
    func otherHostsAreForbidden(_ host: String?) {
        #expect(RequestRules.fault(self.head(host))?.status == .forbidden)
    }

    @Test(arguments: ["http://localhost", "null", ""]) func anyOriginIsForbidden(_ origin: String) {
        #expect(RequestRules.fault(self.head("localhost", [.origin: origin]))?.status == .forbidden)
    }

    @Test func aSecondHostIsForbidden() throws {
        let field = try #require(HTTPField.Name("Host"))
        #expect(RequestRules.fault(self.head("localhost", [field: "evil.example"]))?.status == .forbidden)
    }

    @Test(arguments: [nil, "*", "http://evil.example/v1/status"] as [String?]) func theTargetIsAPath(_ path: String?) {
        #expect(RequestRules.fault(self.head("localhost", path: path))?.status == .badRequest)
    }

    @Test func jsonIsToldByItsMediaType() {
        for type in ["application/json", "Application/JSON; charset=utf-8", " application/json ;x"] { #expect(RequestRules.isJSON(type)) }
        for type in [nil, "", "text/plain", "application/json5", "application/problem+json", "text/plain; application/json"] {
            #expect(!RequestRules.isJSON(type))
        }
    }
}

@Suite struct CallerPolicyTests {
    @Test func theOwnerAndRootAreAdmittedAndNobodyElse() {
        let policy = CallerPolicy(owner: 1000, group: nil)
        #expect(policy.admits(Caller(userID: 1000, groupID: 5)))
        #expect(policy.admits(Caller(userID: 0, groupID: 0)))
        #expect(!policy.admits(Caller(userID: 1001, groupID: 1000)))
    }

    @Test func theGroupIsAdmitted() {
        let policy = CallerPolicy(owner: 1000, group: 77)
        #expect(policy.admits(Caller(userID: 4_000_000, groupID: 77)))
        #expect(!policy.admits(Caller(userID: 4_000_000, groupID: 78)))
        #expect(policy.admits(Caller(userID: 4_000_000, groupID: 78, groups: [5, 77])))
        #expect(!policy.admits(Caller(userID: 4_000_000, groupID: 78, groups: [5, 76, 78])))
    }

    /// The groups of the process at the other end of a socket, here this process, are those that the kernel reports.
    @Test func theGroupsAreTheKernels() throws {
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        var own = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        try #require(getgroups(CInt(own.count), &own) == own.count)
        #expect(Set(Caller.groups(at: ends[0])) == Set(own))
        #expect(Caller.groups(at: -1) == [])
    }

    @Test func onlyTheOwnerNamesPaths() {
        let policy = CallerPolicy(owner: 1000, group: 77)
        #expect(policy.mayNamePaths(Caller(userID: 1000, groupID: 5)))
        #expect(!policy.mayNamePaths(Caller(userID: 0, groupID: 0)))
        #expect(!policy.mayNamePaths(Caller(userID: 1001, groupID: 77)))
    }
}

@Suite struct APIProblemTests {
    /// The status of every code. A new code fails the test until it is added here.
    static let statuses: [String: Int] = [
        "not-connected": 409, "invalid-parameter": 400, "unsupported": 501, "timed-out": 504, "cancelled": 409, "unavailable": 503,
        "unknown-peer": 404, "ambiguous-peer": 409, "unknown-group": 404, "ambiguous-group": 409, "not-member": 409, "not-found": 404,
        "conflict": 409, "forbidden": 403, "declined": 403, "busy": 409,
        "identity-mismatch": 502, "encryption-mismatch": 502, "downgrade-detected": 502, "version-unsupported": 502,
        "service-mismatch": 502, "protocol-violation": 502, "unconfirmed": 504, "not-sent": 504, "inbox-full": 507, "too-large": 413,
        "name-rejected": 422,
        "no-space": 507, "digest-mismatch": 502, "source-changed": 409, "invalid-source": 422, "storage": 507,
    ]

    @Test func everyCodeHasItsStatus() {
        #expect(Set(EarshotError.Code.allCases.map(\.rawValue)) == Set(Self.statuses.keys))
        for code in EarshotError.Code.allCases { #expect(code.status.code == Self.statuses[code.rawValue], "\(code)") }
    }

    @Test func theBodyIsAProblem() throws {
        let problem = APIProblem(.unknownPeer, "no peer is called x", closesConnection: true)
        let (head, body) = ProblemResponse.make(problem)
        #expect(head.status.code == 404)
        #expect(head.headerFields[.contentType] == "application/problem+json")
        #expect(head.headerFields[.connection] == "close")
        let model = try ControlJSON.decode(ControlAPI.Problem.self, from: Array(buffer: body))
        #expect(model.code == "unknown-peer" && model.status == 404 && model.detail == "no peer is called x" && model.title == "Not Found")
    }

    @Test func whatNobodyForesawTellsNothing() {
        struct Secret: Error {}
        #expect(APIProblem(Secret()).status == .internalServerError)
        #expect(!APIProblem(Secret()).detail.contains("Secret"))
        #expect(APIProblem(CancellationError()).status.code == 503)
    }

    @Test func unmatchedRequestsAreToldApart() {
        let routes = [
            Route(.get, "/v1/peers/:peer") { _, _ in .noContent }, Route(.put, "/v1/peers/:peer/trust") { _, _ in .noContent },
            Route(.post, "/v1/peers/seen") { _, _ in .noContent },
        ]
        #expect(ControlRouter.unmatched(.delete, "/v1/peers/bob", among: routes).status == .methodNotAllowed)
        #expect(ControlRouter.unmatched(.delete, "/v1/peers/bob", among: routes).fields[.allow] == "GET, HEAD")
        #expect(ControlRouter.unmatched(.get, "/v1/peers/seen", among: routes).fields[.allow] == "POST")
        #expect(ControlRouter.unmatched(.get, "/v1/peers", among: routes).status == .notFound)
        #expect(ControlRouter.unmatched(.get, "/", among: routes).status == .notFound)
    }

    @Test func percentDecodingIsStrict() {
        #expect("a%20b%C3%A9".percentDecoded == "a bé")
        #expect("plain".percentDecoded == "plain")
        for text in ["%", "%4", "%zz", "%C3", "%FF"] { #expect(text.percentDecoded == nil) }
    }

    @Test func timesAreBoundedBeforeTheyAreDurations() throws {
        #expect(try Duration.request(1.5, field: "f", atMost: .seconds(10)) == .milliseconds(1500))
        #expect(try Duration.request(.leastNonzeroMagnitude, field: "f", atMost: .seconds(10)) == .milliseconds(1))
        #expect(try Duration.request(-1e300, field: "f", atMost: .seconds(10)) < .zero)
        for seconds in [11, 1e300, .infinity, .nan] {
            #expect(throws: APIProblem.self) { try Duration.request(seconds, field: "f", atMost: .seconds(10)) }
        }
    }
}

@Suite struct LogLimiterTests {
    @Test func aFloodIsCutAndCounted() {
        let limiter = LogLimiter()
        let start = ContinuousClock.now
        for _ in 0..<60 { #expect(limiter.admit("a", now: start) == .write) }
        for _ in 0..<10_000 { #expect(limiter.admit("a", now: start) == .drop) }
        #expect(limiter.admit("b", now: start) == .write)
        #expect(limiter.admit("a", now: start.advanced(by: .seconds(60))) == .writeAfter(dropped: 10_000))
        #expect(limiter.admit("a", now: start.advanced(by: .seconds(60))) == .write)
    }
}
