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
export const noShape = new Shape({ left: 0 })
