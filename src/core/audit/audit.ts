// The audit: what must be true of rows after every commit, checked over a tree or a whole store.
//
// Owns:      the order of a check (verify, read, check, repair, check again), its options and its report.
// Called by: `runtime.audit()`, `legate audit`, imports of trees, and tests after every scenario.
// Must stay true:
//   - Rows as any commit leaves them give no finding; a finding means a defect or a change from outside.
//   - A check reads rows only and reports each defect once. A repair is a commit, and loses nothing.
//   - One damaged tree does not hide the others.

import { Slices } from '../base/clock.ts'
import { InputError, isLegateError, type LegateError, messageOf, StoreError } from '../base/error.ts'
import { flag, list, type OptionRules, readOptions, text } from '../base/options.ts'
import { isDead } from '../engine/lease.ts'
import type { TreeRows } from '../graph/reader.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import { FINDING_TYPES, type Finding, type FindingType, finding } from '../store/archive.ts'
import type { Ledger } from '../store/ledger.ts'
import { look } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { AuditContext, Check } from './check.ts'
import { background, orphans, parentage, places } from './conversation-checks.ts'
import { linkEnds, linkOutcomes, lostChildren, twins, waits } from './link-checks.ts'
import { eachTree, loadTree } from './load-tree.ts'
import {
  blockers,
  bodies,
  callsWithTasks,
  claims,
  cycles,
  edgeEnds,
  nodeKinds,
  nodeTimes,
  openInEnded,
  versions,
} from './node-checks.ts'
import { planRepair } from './repair.ts'
import { accounts, blocks, clocks, holds, lanes, nodeOrder, outcomes, pairs, sequence } from './turn-checks.ts'

export interface AuditOptions {
  /** Checks only the tree of this root conversation. Left out: the whole store. */
  readonly rootId?: Id
  /** Reports only these types of findings. */
  readonly types?: readonly FindingType[]
  /** Repairs every defect whose repair loses nothing, and checks again. */
  readonly repair?: boolean
  /** Also compares every stored record with the hashes of its commit: finds any later change. */
  readonly verify?: boolean
}

export interface AuditReport {
  /** The defects; after a repair, the remaining ones. */
  readonly findings: readonly Finding[]
  /** The defects that were repaired. */
  readonly repaired: readonly Finding[]
  /** How much was checked. */
  readonly checked: {
    readonly trees: number
    readonly conversations: number
    readonly turns: number
    readonly nodes: number
    readonly links: number
  }
  /** How much was compared with its hashes; null without `verify`. A store in memory keeps no hashes. */
  readonly verified: { readonly rows: number; readonly commits: number } | null
}

const OPTIONS: OptionRules<Omit<AuditOptions, 'rootId'>> = { types: list, repair: flag, verify: flag }

/** How often to check again: a repair may bring other defects to light. */
const MAX_ROUNDS = 5

export async function audit(ledger: Ledger, options: AuditOptions = {}): Promise<AuditReport> {
  await checkOptions(ledger, readOptions('audit()', options, { ...OPTIONS, rootId: text }))
  const auditor = new Auditor(ledger, options)
  if (options.verify === true) await auditor.verify()
  try {
    if (options.rootId !== undefined) await auditor.atTree(options.rootId)
    else for await (const tree of eachTree(ledger.store)) await auditor.at(tree)
  } catch (error) {
    auditor.unreadable(error)
  }
  auditor.tampered()
  return auditor.report()
}

/** Audits one conversation: its own rows, and its delegations with others. */
export async function auditConversation(
  ledger: Ledger,
  { id, rootId }: Conversation,
  options: Omit<AuditOptions, 'rootId'> = {},
): Promise<AuditReport> {
  const report = await audit(ledger, { ...readOptions('conversation.audit()', options, OPTIONS), rootId })
  const links = [...report.findings, ...report.repaired].filter(({ subject }) => subject === 'link')
  const own = await look(ledger.store, rootId, (tree) => {
    return new Set(links.filter((one) => tree.link(one.id)?.childConversationId === id).map((one) => one.id))
  })
  const isIts = (one: Finding) => one.conversationId === id || (one.subject === 'link' && own.has(one.id))
  return { ...report, findings: report.findings.filter(isIts), repaired: report.repaired.filter(isIts) }
}

class Auditor {
  private readonly ledger: Ledger
  private readonly options: AuditOptions
  private readonly findings: Finding[] = []
  private readonly repaired: Finding[] = []
  private verified: AuditReport['verified'] = null
  private readonly slices = new Slices()
  private readonly counts = { trees: 0, conversations: 0, turns: 0, nodes: 0, links: 0 }

  constructor(ledger: Ledger, options: AuditOptions) {
    this.ledger = ledger
    this.options = options
  }

  /** Runs before any repair. */
  async verify(): Promise<void> {
    const { rootId, types } = this.options
    const { archive, name } = this.ledger.store
    if (archive === undefined) throw new InputError('invalid_input', `The store "${name}" keeps no hashes to verify.`)
    const { findings, rows, commits } = await archive.verify(rootId)
    for (const one of findings) if (types === undefined || types.includes(one.type)) this.findings.push(one)
    this.verified = { rows, commits }
  }

  /** Reports an unreadable row as a finding; throws when the store is closed or busy. */
  unreadable(error: unknown): void {
    if (!StoreError.isInstance(error) || error.code !== 'store') throw error
    const { rootId = null } = this.options
    const place = { subject: 'store', id: this.ledger.store.name, rootId, conversationId: null } as const
    this.findings.push(finding('unreadable', place, `Rows cannot be read: ${messageOf(error)}`))
  }

  /** Audits one tree. A tree that was changed from outside becomes a finding and does not hide the others. */
  async atTree(rootId: Id): Promise<void> {
    try {
      await this.at(await loadTree(this.ledger.store, rootId))
    } catch (error) {
      if (!isLegateError(error, 'tampered')) throw error
    }
  }

  /** Reports the trees that the store itself found changed, unless verifying has reported them in more detail. */
  tampered(): void {
    const { rootId: asked, types } = this.options
    if (types !== undefined && !types.includes('altered_row')) return
    for (const { details, message } of this.ledger.store.tampered?.() ?? []) {
      const rootId = String(details['rootId'])
      const isTold = this.findings.some((one) => one.rootId === rootId && BYTES.has(one.type))
      if (isTold || (asked ?? rootId) !== rootId) continue
      this.findings.push(
        finding('altered_row', { subject: 'store', id: rootId, rootId, conversationId: null }, message),
      )
    }
  }

  async at(tree: TreeRows): Promise<void> {
    this.count(tree)
    let found = await this.lookUnlessAltered(tree)
    if (found.length > 0 && (await this.isDeleted(tree.rootId))) return
    if (this.options.repair === true) found = await this.mend(tree, found)
    this.findings.push(...found)
  }

  report(): AuditReport {
    return { findings: this.findings, repaired: this.repaired, checked: this.counts, verified: this.verified }
  }

  /** Events are read only when a check needs them. */
  private async lookUnlessAltered(tree: TreeRows): Promise<Finding[]> {
    try {
      return await this.look(tree)
    } catch (error) {
      if (!isLegateError(error, 'tampered') || error.details['commit'] === undefined) throw error
      return this.alteredEvents(tree.rootId, error)
    }
  }

  /** Reports changed events, unless verifying has reported the same. */
  private alteredEvents(rootId: Id, { message, details }: LegateError): Finding[] {
    const id = `${rootId} ${details['commit']}`
    const isWanted = this.options.types?.includes('broken_chain') ?? true
    if (!isWanted || this.findings.some((one) => one.type === 'broken_chain' && one.id === id)) return []
    return [finding('broken_chain', { subject: 'commit', id, rootId, conversationId: null }, message)]
  }

  private async look(tree: TreeRows): Promise<Finding[]> {
    const found: Finding[] = []
    for (const some of checksOf(tree, await this.around(), this.options.types)) {
      found.push(...some)
      // A check of a large tree takes a while.
      await this.slices.next()
    }
    return found
  }

  private async around(): Promise<AuditContext> {
    const { store, kinds, clock } = this.ledger
    const now = clock.now()
    const alive = new Set((await store.engines()).filter((engine) => !isDead(engine, now)).map(({ id }) => id))
    return { kinds, isAlive: (id) => alive.has(id) }
  }

  /**
   * Repairs, and gives the remaining findings. When rows changed meanwhile and a repair was refused, the tree is checked again.
   */
  private async mend(tree: TreeRows, first: readonly Finding[]): Promise<Finding[]> {
    let [rows, found] = [tree, [...first]]
    const before = new Map(found.map((one) => [keyOf(one), one]))
    for (let round = 0; round < MAX_ROUNDS && found.some(({ repairable }) => repairable); round++) {
      for (const one of found) if (one.repairable) await this.repair(rows, one)
      rows = await loadTree(this.ledger.store, tree.rootId)
      found = await this.look(rows)
      for (const one of found) before.set(keyOf(one), before.get(keyOf(one)) ?? one)
    }
    const left = new Set(found.map(keyOf))
    for (const [key, one] of before) if (!left.has(key)) this.repaired.push(one)
    return found
  }

  private async repair(tree: TreeRows, one: Finding): Promise<void> {
    const plan = (draft: Parameters<typeof planRepair>[0]) => planRepair(draft, tree, one)
    await this.ledger.commit({ kind: 'mutate', rootId: tree.rootId, plan })
  }

  /** True where another process deleted the tree while it was being read. */
  private async isDeleted(rootId: Id): Promise<boolean> {
    const { store } = this.ledger
    if ((await look(store, rootId, (tree) => tree.conversation(rootId))) !== undefined) return false
    return (await store.archive?.tombstone(rootId)) !== undefined
  }

  private count({ conversations, turns, nodes, links }: TreeRows): void {
    this.counts.trees++
    this.counts.conversations += conversations.size
    this.counts.turns += turns.size
    this.counts.nodes += nodes.size
    this.counts.links += links.size
  }
}

const BYTES: ReadonlySet<FindingType> = new Set(['altered_row', 'missing_row', 'unknown_row', 'altered_index'])

function keyOf({ type, subject, id }: Finding): string {
  return `${type} ${subject} ${id}`
}

async function checkOptions({ store }: Ledger, { rootId, types }: AuditOptions): Promise<void> {
  if (rootId !== undefined && (await rootOf(store, rootId)) !== rootId) {
    throw await notFound(store, 'root conversation', rootId)
  }
  const unknown = types?.find((type) => !FINDING_TYPES.includes(type))
  if (unknown === undefined) return
  const message = `There is no finding of the type "${unknown}". There are: ${FINDING_TYPES.join(', ')}.`
  throw new InputError('invalid_input', message)
}

/** Finds the root even where it was changed from outside: an audit looks at it. */
async function rootOf(store: Store, id: Id): Promise<Id | undefined> {
  try {
    return await store.rootOf(id)
  } catch (error) {
    if (isLegateError(error, 'tampered')) return id
    throw error
  }
}

const CHECKS: readonly Check[] = [
  nodeKinds,
  nodeTimes,
  claims,
  blockers,
  openInEnded,
  callsWithTasks,
  bodies,
  versions,
  edgeEnds,
  cycles,
  outcomes,
  accounts,
  lanes,
  nodeOrder,
  clocks,
  holds,
  linkEnds,
  twins,
  linkOutcomes,
  waits,
  lostChildren,
  orphans,
  parentage,
  background,
  places,
  blocks,
  sequence,
  pairs,
]

/** Finds every defect of these types in the rows of a tree. Rows as any commit leaves them have none. */
export function auditTree(tree: TreeRows, around: AuditContext, types?: readonly FindingType[]): Finding[] {
  return [...checksOf(tree, around, types)].flat()
}

/** The findings of one check after the other. */
function* checksOf(tree: TreeRows, around: AuditContext, types?: readonly FindingType[]): Generator<Finding[]> {
  const isWanted = (type: FindingType) => types === undefined || types.includes(type)
  for (const check of CHECKS) {
    if (check.types.some(isWanted)) yield [...check.find(tree, around)].filter(({ type }) => isWanted(type))
  }
}
