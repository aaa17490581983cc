/// Where the bytes of a file's data lie within the file.
struct ExtentMap: Sendable {
    /// By every how many-th extent is noted how much data is before it: what is between is counted, and two million of them cost little.
    private static let stride = 64

    private enum Runs {
        /// One from the start.
        case whole
        case sparse(TreeEntry.Extents)
    }

    private let size: UInt64
    private let runs: Runs
    /// By `stride` extents, how many bytes of data are before them.
    private let marks: [UInt64]

    init(_ content: TreeEntry.Content) {
        switch content {
        case .directory, .link: (self.size, self.runs, self.marks) = (0, .whole, [])
        case .file(let size): (self.size, self.runs, self.marks) = (size, .whole, [])
        case .sparse(let size, let extents):
            var marks: [UInt64] = []
            marks.reserveCapacity(extents.count / Self.stride + 1)
            var sum: UInt64 = 0
            for (index, extent) in extents.enumerated() {
                if index % Self.stride == 0 { marks.append(sum) }
                sum += extent.length
            }
            (self.size, self.runs, self.marks) = (size, .sparse(extents), marks)
        }
    }

    /// The byte of the file that holds byte `position` of the data, and how many bytes follow on from it; 0 behind the data.
    func place(_ position: UInt64) -> (offset: UInt64, run: UInt64) {
        let nowhere = (offset: self.size, run: UInt64(0))
        switch self.runs {
        case .whole: return position < self.size ? (position, self.size - position) : nowhere
        case .sparse(let extents):
            var (low, high) = (0, self.marks.count)
            while low < high {
                let middle = (low + high) / 2
                if self.marks[middle] <= position { low = middle + 1 } else { high = middle }
            }
            guard low > 0 else { return nowhere }
            var before = self.marks[low - 1]
            let first = (low - 1) * Self.stride
            for index in first..<min(first + Self.stride, extents.count) {
                let extent = extents[index]
                let within = position - before
                if within < extent.length { return (extent.offset + within, extent.length - within) }
                before += extent.length
            }
            return nowhere
        }
    }

    /// How many bytes of data are in the first `length` bytes of the file.
    func dataBefore(_ length: UInt64) -> UInt64 {
        switch self.runs {
        case .whole: return min(length, self.size)
        case .sparse(let extents):
            var sum: UInt64 = 0
            for extent in extents {
                guard extent.offset < length else { break }
                sum += min(extent.length, length - extent.offset)
            }
            return sum
        }
    }

    /// The blocks that the first `count` bytes of the data touch.
    func blocks(ofFirst count: UInt64, in blocks: DiskBlocks) -> BlockRuns {
        var runs = BlockRuns(of: blocks)
        switch self.runs {
        case .whole: runs.add(at: 0, count: min(count, self.size))
        case .sparse(let extents):
            var left = count
            for extent in extents {
                guard left > 0 else { break }
                let length = min(left, extent.length)
                runs.add(at: extent.offset, count: length)
                left -= length
            }
        }
        return runs
    }
}
