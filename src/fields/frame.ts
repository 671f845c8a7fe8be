/** An object or a list that is being read, and its place: `key` in `parent`. */
export class Frame {
  readonly parent: Frame | null
  readonly key: string | number
  /** The outermost is 1. */
  readonly depth: number
  /** One of the two is there. */
  list: unknown[] | null
  readonly record: Record<string, unknown> | null
  /** True inside what stands under a key that its object had before. */
  readonly isRepeat: boolean
  private readonly shape: Shape
  /** How many values are complete. */
  size = 0
  /** The last key was there before. */
  isDouble = false
  /** Where in the shape the next key is expected; -1 where the shape does not fit. */
  private expected = 0

  constructor(parent: Frame | null, key: string | number, isList: boolean, isRepeat: boolean, shape: Shape) {
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

  /** The next key. Of equal texts it is the one that is known already. */
  nameKey(name: string): string {
    const known = this.expected < 0 ? undefined : this.shape.at(this.expected)
    this.isDouble = false
    if (known !== name) return this.nameOtherKey(name)
    this.expected++
    return known
  }

  /** The shape of what stands under the key or index in hand. */
  shapeBelow(): Shape {
    if (this.list !== null) return this.shape.below(0)
    return this.expected > 0 ? this.shape.below(this.expected - 1) : noShape
  }

  /** The value of what closed. A short list is replaced by one that takes no more room than it needs. */
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

  /** Keys that follow the shape are all different; others have to be looked up. */
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

/** A list that grows has room for some 16 items more. */
const shortList = 32

/** The keys and indexes that lead to `key` in `parent`; none for the root. */
export function pathOf(parent: Frame | null, key: string | number): (string | number)[] {
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
 * The keys that an object at one place of the document had, in order. The next object there mostly has the same: its
 * keys then need neither a string of their own nor a look for doubles.
 */
export class Shape {
  private readonly keys: string[] = []
  /** The shapes below: of each key's value; in a list one for all items. */
  private readonly inside: (Shape | undefined)[] = []
  /** How many more shapes the document may have: what is remembered must stay small beside it. */
  private readonly budget: { left: number }

  constructor(budget: { left: number } = { left: maxShapes }) {
    this.budget = budget
  }

  /** The string of the same text that is known already, or undefined. */
  at(index: number): string | undefined {
    return this.keys[index]
  }

  /** Where `key` is expected at or behind `from`, or -1. */
  find(key: string, from: number): number {
    return this.keys.indexOf(key, from)
  }

  /** Keeps a key that no object had here before, as the last one. Not in an object of very many keys: that is a map. */
  learn(key: string, index: number): boolean {
    if (index !== this.keys.length || index >= maxKeys || this.budget.left === 0) return false
    this.keys.push(key)
    return true
  }

  below(index: number): Shape {
    const known = this.inside[index]
    if (known !== undefined) return known
    if (index >= maxKeys || this.budget.left === 0) return noShape
    this.budget.left--
    const made = new Shape(this.budget)
    this.inside[index] = made
    return made
  }
}

const maxKeys = 64
const maxShapes = 500
/** Learns nothing. */
const noShape = new Shape({ left: 0 })
