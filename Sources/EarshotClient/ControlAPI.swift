/// The control API's values in their JSON form on the Unix socket: the schemas of `earshotd/OpenAPI/openapi.json`.
///
/// The daemon encodes the values and clients decode them. Field names are `snake_case`, times are ISO 8601 in UTC, bytes are base64. A
/// client of another version ignores unknown fields, and keeps unknown enum values as ``Tolerant/unknown(_:)``. A field without a value is
/// absent if the schema does not require it, otherwise `null`; decoding accepts both.
public enum ControlAPI {
    /// The prefix of every path, as in `/v1/peers`.
    public static let pathPrefix = "/v1"
    /// The header of an answer with events: `EPOCH:SEQ` of the last event before the answer.
    public static let eventPositionHeader = "Earshot-Events"
    /// The media type of a directory's content in the protocol's own tree format, when it is neither JSON nor a tar archive.
    public static let treeMediaType = "application/vnd.earshot.tree"
}
