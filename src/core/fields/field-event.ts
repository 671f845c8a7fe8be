import type { Issue } from '../base/schema/schema.ts'
import { dotPath, slashPath, wildcardPath } from './field-path.ts'
import { framePath, type OpenContainer } from './frame.ts'
import { matchesKey, type PathPattern } from './path-pattern.ts'

export type FieldKind = 'open' | 'delta' | 'done' | 'truncated'

/**
 * Something became known about one place of the document: `open`, an object or list began; `delta`, a string grew by
 * `delta`; `done`, the value is complete and will not change; `truncated`, the text ended or broke inside it.
 */
export class FieldEvent<Value = unknown> {
  readonly kind: FieldKind
  /**
   * The value so far. An object or list belongs to the document itself and grows with it: read it, do not change it.
   */
  readonly value: Value
  readonly delta: string | undefined
  /** True when this value replaces an earlier one, because its key (or one around it) stood in its object before. */
  readonly isRepeat: boolean
  /** The schema's objections to a value that is done: empty when it fits, undefined when nobody checked it. */
  issues: readonly Issue[] | undefined

  private readonly parent: OpenContainer | null
  private readonly key: string | number

  constructor(
    kind: FieldKind,
    parent: OpenContainer | null,
    key: string | number,
    isRepeat: boolean,
    value: Value,
    delta: string | undefined,
  ) {
    this.kind = kind
    this.value = value
    this.delta = delta
    this.isRepeat = isRepeat
    this.issues = undefined
    this.parent = parent
    this.key = key
  }

  get isComplete(): boolean {
    return this.kind === 'done'
  }

  /** Keys and indexes from the root, which is `[]`. */
  get path(): (string | number)[] {
    return framePath(this.parent, this.key)
  }

  /** Example: `tasks[0].title`. */
  get dot(): string {
    return dotPath(this.path)
  }

  /** Example: `/tasks/0/title` (RFC 6901). */
  get slash(): string {
    return slashPath(this.path)
  }

  /** Example: `tasks[*].title`. */
  get wildcard(): string {
    return wildcardPath(this.path)
  }

  /** The indexes that `wildcard` leaves out. */
  get indexes(): number[] {
    return this.path.filter((key) => typeof key === 'number')
  }

  /** True when the pattern leads to this field. Takes time in proportion to the length of the pattern. */
  isAt(pattern: PathPattern): boolean {
    let frame = this.parent
    if (pattern.length !== (frame === null ? 0 : frame.depth)) return false
    let key = this.key
    for (let at = pattern.length - 1; frame !== null; at--) {
      const segment = pattern[at]
      if (segment === undefined || !matchesKey(segment, key)) return false
      key = frame.key
      frame = frame.parent
    }
    return true
  }
}
