/**
 * The columns of the four tables, declared once. `rows.made.ts` (copies, new rows) and `store/codec/rows.made.ts` (the text
 * of a row) are made from these tables, as straight-line code: loops and spreads are slower by half and more. Rows for tests
 * and the check of rows from outside read the tables as they are.
 *
 * To add a column: one line in the interface of its row, one line here, then `npx vitest run src/graph/columns.test.ts -u`.
 * A column that you forget in one of the places does not compile.
 *
 * The order is the order of the fields in the text of a row, which is hashed: a new column goes to the end of its table.
 */
import { NO_USAGE } from './content.ts'
import type { Conversation, Link, Node, Turn } from './rows.ts'

export interface Column<Value, Name extends string = string> {
  /** The value of most rows: the text of a row leaves it out. */
  readonly usual: Value
  /** The value of a new row; absent: the usual one. */
  readonly fresh?: Value
  /** The value in rows for tests; absent: as in a new row. */
  readonly test?: Value
  /** The values that a row from outside may have, where a list of them exists. */
  readonly oneOf?: readonly Value[]
  readonly text?: ColumnText<Name>
}

/**
 * How a column is written, where it is not simply left out when it has its usual value:
 * `always`; `never`, because another column or the turn says it; left out where it is `empty`, or where it is the `same` as
 * another column; `by` a function of `store/codec/parts.ts` that takes the row. `as` is its name in the text, `first` a field
 * of the text that comes before it and the function that gives it.
 */
export type ColumnText<Name extends string = string> =
  | 'always'
  | 'never'
  | 'empty'
  | { readonly same: Name }
  | { readonly as: string; readonly by?: string }
  | { readonly by: string; readonly first?: readonly [name: string, by: string] }

export type Columns<Row> = { readonly [Key in keyof Required<Row>]: Column<Row[Key], keyof Row & string> }

export const CONVERSATION_COLUMNS: Columns<Conversation> = {
  id: { usual: '', text: { as: 'conversation' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: { same: 'id' } },
  type: { usual: 'user', oneOf: ['user', 'sub_agent'] },
  depth: { usual: 0 },
  agent: { usual: { name: '', hash: '' }, test: { name: 'editor', hash: 'h1' }, text: 'always' },
  path: { usual: [], test: ['editor'], text: { by: 'packPath' } },
  parentConversationId: { usual: null, text: { by: 'packParent' } },
  parentTurnId: { usual: null },
  parentTaskId: { usual: null },
  owner: { usual: null },
  title: { usual: null },
  metadata: { usual: {}, text: { by: 'packMetadata' } },
  ceiling: { usual: [], text: 'empty' },
  groups: { usual: null },
  activeTurnId: { usual: null },
  places: { usual: null },
  background: { usual: [], text: 'empty' },
  turnCount: { usual: 0, test: 1, text: 'always' },
  lane: { usual: null },
  createdAt: { usual: 0, test: 1000, text: 'always' },
}

export const TURN_COLUMNS: Columns<Turn> = {
  id: { usual: '', text: { as: 'turn' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: { same: 'conversationId' } },
  conversationId: { usual: '', text: 'always' },
  laneId: { usual: '', text: { same: 'conversationId' } },
  ordinal: { usual: 0 },
  state: { usual: 'running', oneOf: ['queued', 'running', 'ended'] },
  input: { usual: null, test: 'hello' },
  limits: {
    usual: { modelCalls: 0, toolCalls: 0, children: 0, concurrency: 0, depth: 0, wallMs: 0 },
    test: { modelCalls: 50, toolCalls: 1000, children: 100, concurrency: 20, depth: 5, wallMs: 3_600_000 },
    text: { by: 'packLimits' },
  },
  account: {
    usual: { modelCalls: 0, toolCalls: 0, children: 0, live: 0, nextRelease: 0, usage: NO_USAGE, uncertain: [] },
    text: { by: 'packAccount' },
  },
  deadline: { usual: null },
  paused: { usual: null },
  spend: { usual: null },
  tree: { usual: null },
  cancel: { usual: null },
  outcome: { usual: null, text: { by: 'packTurnOutcome' } },
  wokenBy: { usual: null },
  attributes: { usual: null },
  history: { usual: null },
  absent: { usual: null },
  nodeCount: { usual: 0, text: 'always' },
  afterSeq: { usual: 0 },
  entryNodeId: { usual: '', text: 'always' },
  createdAt: { usual: 0, test: 1000, text: { as: 'times', by: 'packTimes' } },
  startedAt: { usual: null, test: 1000, text: 'never' },
  endedAt: { usual: null, text: 'never' },
}

export const NODE_COLUMNS: Columns<Node> = {
  id: { usual: '', text: { as: 'node' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: 'never' },
  conversationId: { usual: '', text: 'never' },
  laneId: { usual: '', text: { same: 'conversationId' } },
  turnId: { usual: '', text: 'never' },
  ordinal: { usual: 0 },
  kind: { usual: '', test: 'task', text: 'always' },
  purpose: { usual: null },
  state: {
    usual: 'finished',
    fresh: 'pending',
    oneOf: [
      ...(['pending', 'awaiting_approval', 'running', 'waiting'] as const),
      ...(['finished', 'errored', 'rejected', 'skipped', 'stopped', 'uncertain'] as const),
    ],
  },
  input: { usual: {}, test: { call: { id: 'call_1', name: 'search', input: { q: 'http' } } }, text: 'empty' },
  output: { usual: {}, text: { by: 'packOutput', first: ['child', 'childOf'] } },
  preview: { usual: '', text: { by: 'packPreview' } },
  metadata: { usual: {}, text: { by: 'packNodeMetadata' } },
  failure: { usual: null },
  versionSet: { usual: '', text: { same: 'id' } },
  attempt: { usual: 1 },
  retryOf: { usual: null },
  idempotencyKey: { usual: null },
  blockers: { usual: 0 },
  wait: { usual: null },
  wakeAt: { usual: null },
  effect: { usual: 'idempotent', fresh: 'effectful', test: 'pure', oneOf: ['pure', 'idempotent', 'effectful'] },
  timeoutMs: { usual: null },
  engineId: { usual: null },
  epoch: { usual: 0 },
  recoveries: { usual: 0 },
  usage: { usual: NO_USAGE, text: { by: 'packNodeUsage' } },
  marks: { usual: null },
  createdAt: { usual: 0, test: 1000, text: { as: 'times', by: 'packTimes' } },
  startedAt: { usual: null, text: 'never' },
  endedAt: { usual: null, text: 'never' },
}

export const LINK_COLUMNS: Columns<Link> = {
  id: { usual: '', text: { as: 'link' } },
  version: { usual: 1, text: 'always' },
  rootId: { usual: '', text: 'never' },
  taskId: { usual: '', text: 'always' },
  hostTurnId: { usual: '', text: 'never' },
  hostConversationId: { usual: '', text: 'never' },
  childConversationId: { usual: '', text: 'always' },
  ordinal: { usual: 0 },
  contract: { usual: 'typed', oneOf: ['typed', 'message', 'open', 'background'] },
  agentName: { usual: '', test: 'researcher', text: 'always' },
  hostName: { usual: '', test: 'editor', text: 'always' },
  toolName: { usual: '', test: 'research', text: { same: 'agentName' } },
  depth: { usual: 1 },
  mode: { usual: 'parked', oneOf: ['parked', 'called', 'background'] },
  wake: { usual: null },
  onParentClose: { usual: 'cancel', oneOf: ['cancel', 'abandon'] },
  released: { usual: true },
  keyed: { usual: null },
  attempt: { usual: 1 },
  retry: { usual: null },
  delegationContext: { usual: null },
  outcome: { usual: null, text: { by: 'packLinkOutcome' } },
  deliveredTo: { usual: null, text: { by: 'packDelivery' } },
}

/** A row with a value of every column: the usual ones, or those of a new row, or those for tests. */
export function rowOf<Row extends object>(columns: Columns<Row>, which: 'usual' | 'fresh' | 'test'): Row {
  const value = (column: Column<unknown>): unknown => {
    if (which === 'test' && column.test !== undefined) return column.test
    return which !== 'usual' && column.fresh !== undefined ? column.fresh : column.usual
  }
  return Object.fromEntries(
    Object.entries<Column<unknown>>(columns).map(([name, column]) => [name, value(column)]),
  ) as Row
}
