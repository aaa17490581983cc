/// The control API's values, as they stand in JSON on the Unix socket: the schemas of `earshotd/OpenAPI/openapi.json`.
///
/// The daemon makes them and our clients read them; neither sees the other's insides. Field names are `snake_case`, times ISO 8601 in UTC,
/// bytes base64. A client of another version meets fields and enum values that it does not know: the former are ignored, the latter are kept
/// as ``Tolerant/unknown(_:)``. Without a value, a field that the schema does not require is absent, and any other one is `null`; both are
/// read alike.
public enum ControlAPI {
    /// Before every path, such as `/v1/peers`.
    public static let pathPrefix = "/v1"
    /// The header of an answer with events: `EPOCH:SEQ` of the last event before it.
    public static let eventPositionHeader = "Earshot-Events"
    /// What a directory's content is called where it is neither JSON nor a tar archive: a tree in the protocol's own format.
    public static let treeMediaType = "application/vnd.earshot.tree"
}
