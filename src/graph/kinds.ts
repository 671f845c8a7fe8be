import { DefinitionError } from '../base/error.ts'

/** What the graph must know of a kind of node. Executors are joined to kinds by the runtime. */
export interface KindFlags {
  /** Only executable kinds may be pending, awaiting approval, running or waiting. */
  readonly executable: boolean
  /** Gives its turn a place in the transcript. */
  readonly anchor: boolean
  readonly transcript: boolean
  /** May be the last node of a turn. */
  readonly leaf: boolean
  readonly editable: boolean
  readonly retriable: boolean
  readonly rerunnable: boolean
  readonly previewChars: number
}

const MESSAGE: KindFlags = {
  executable: false,
  anchor: false,
  transcript: false,
  leaf: false,
  editable: true,
  retriable: false,
  rerunnable: false,
  previewChars: 200,
}
const SPEAKER: KindFlags = {
  executable: true,
  anchor: true,
  transcript: true,
  leaf: true,
  editable: false,
  retriable: true,
  rerunnable: true,
  previewChars: 2000,
}
const TASK: KindFlags = { ...MESSAGE, executable: true, editable: false, retriable: true }

export type Kinds = ReadonlyMap<string, KindFlags>

export const BUILT_IN_KINDS: Kinds = new Map([
  ['system_message', MESSAGE],
  ['developer_message', MESSAGE],
  ['user_message', { ...MESSAGE, anchor: true, transcript: true }],
  ['agent_message', SPEAKER],
  ['character_message', SPEAKER],
  ['task', TASK],
  ['summary', { ...MESSAGE, editable: false }],
])

/** The built-in kinds and a user's own. A user's kind is a task unless it says otherwise, and may not replace one of ours. */
export function withKinds(own: Readonly<Record<string, Partial<KindFlags>>>): Kinds {
  const kinds = new Map(BUILT_IN_KINDS)
  for (const [name, flags] of Object.entries(own)) {
    if (BUILT_IN_KINDS.has(name)) {
      throw new DefinitionError('definition', `The node kind "${name}" is built in; give yours another name.`, {
        details: { kind: name },
      })
    }
    if (!/^[a-z][a-z0-9_]{0,63}$/.test(name)) {
      throw new DefinitionError('definition', `"${name}" is no name for a node kind: use a-z, 0-9 and _, at most 64.`, {
        details: { kind: name },
      })
    }
    kinds.set(name, { ...TASK, ...flags })
  }
  return kinds
}

export function previewOf(text: string, kind: string, kinds: Kinds): string {
  const limit = kinds.get(kind)?.previewChars ?? TASK.previewChars
  return text.length <= limit ? text : text.slice(0, limit)
}
