/** An object or a list that is being read, and its place: `key` in `parent`. */
export class OpenContainer {
  readonly parent: OpenContainer | null
  readonly key: string | number
  /** The outermost is 1. */
  readonly depth: number
  /** Exactly one of `list` and `record` is set. */
  list: unknown[] | null
  readonly record: Record<string, unknown> | null
  /** True inside a value whose key stood in its object before. */
  readonly isRepeat: boolean
  private readonly shape: KeyShape
  /** How many values are complete. */
  size = 0
  /** True when the last key stood in this object before. */
  isDouble = false
  /** The index in the shape at which the next key is expected; -1 where the shape does not fit. */
  private expected = 0

  constructor(parent: OpenContainer | null, key: string | number, isList: boolean, isRepeat: boolean, shape: KeyShape) {
    this.parent = parent
    this.key = key
    this.depth = parent === null ? 1 : parent.depth + 1
    this.list = isList ? [] : null
    this.record = isList ? null : {}
    this.isRepeat = isRepeat
    this.shape = shape
  }

  get value(): unknown {
    return this.list ?? this.record
  }

  /** Names the next key. Equal names share the string that is known already. */
  nameKey(name: string): string {
    const known = this.expected < 0 ? undefined : this.shape.at(this.expected)
    this.isDouble = false
    if (known !== name) return this.nameOtherKey(name)
    this.expected++
    return known
  }

  /** The shape of the value under the current key or index. */
  shapeBelow(): KeyShape {
    if (this.list !== null) return this.shape.below(0)
    return this.expected > 0 ? this.shape.below(this.expected - 1) : noShape
  }

  /** Returns the closed value. A short list is replaced by one that takes no more room than it needs. */
  close(): unknown {
    const { list, parent } = this
    if (list === null || list.length === 0 || list.length > shortList) return this.value
    this.list = list.slice()
    parent?.put(this.key, this.list)
    return this.list
  }

  put(key: string | number, value: unknown): void {
    if (this.list !== null) this.list[this.size] = value
    else if (this.record !== null) setOwn(this.record, key, value)
  }

  /** Keys that follow the shape are all different; this looks up the others. */
  private nameOtherKey(name: string): string {
    const found = this.expected < 0 ? -1 : this.shape.find(name, this.expected)
    if (found >= 0) {
      this.expected = found + 1
      return name
    }
    this.isDouble = this.record !== null && Object.hasOwn(this.record, name)
    this.expected = !this.isDouble && this.shape.learn(name, this.expected) ? this.expected + 1 : -1
    return name
  }
}

/** A list that grows reserves room for about 16 more items. */
const shortList = 32

/** The keys and indexes that lead to `key` in `parent`; none for the root. */
export function framePath(parent: OpenContainer | null, key: string | number): (string | number)[] {
  if (parent === null) return []
  const path = new Array<string | number>(parent.depth)
  path[parent.depth - 1] = key
  let frame = parent
  while (frame.parent !== null) {
    path[frame.depth - 2] = frame.key
    frame = frame.parent
  }
  return path
}

/** Plain assignment to `__proto__` would change the prototype instead. */
function setOwn(record: Record<string, unknown>, key: string | number, value: unknown): void {
  if (key !== '__proto__') {
    record[key] = value
    return
  }
  Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true })
}

/**
 * The keys of the objects at one place of the document, in order. The next object there mostly has the same keys, which
 * then need neither strings of their own nor a search for doubles.
 */
export class KeyShape {
  private readonly keys: string[] = []
  /** The shapes below: one for each key's value; in a list one for all items. */
  private readonly inside: (KeyShape | undefined)[] = []
  /** How many more shapes the document may have, so that they stay small beside it. */
  private readonly budget: { left: number }

  constructor(budget: { left: number } = { left: maxShapes }) {
    this.budget = budget
  }

  /** The known string of the key at this index, or undefined. */
  at(index: number): string | undefined {
    return this.keys[index]
  }

  /** The index at which `key` is expected, at or behind `from`, or -1. */
  find(key: string, from: number): number {
    return this.keys.indexOf(key, from)
  }

  /** Keeps a new key as the last one. It refuses in an object of very many keys, which is a map. */
  learn(key: string, index: number): boolean {
    if (index !== this.keys.length || index >= maxKeys || this.budget.left === 0) return false
    this.keys.push(key)
    return true
  }

  below(index: number): KeyShape {
    const known = this.inside[index]
    if (known !== undefined) return known
    if (index >= maxKeys || this.budget.left === 0) return noShape
    this.budget.left--
    const made = new KeyShape(this.budget)
    this.inside[index] = made
    return made
  }
}

const maxKeys = 64
const maxShapes = 500
/** A shape that learns nothing. */
const noShape = new KeyShape({ left: 0 })
