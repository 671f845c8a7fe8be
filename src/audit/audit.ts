import { InputError, isLegateError, type LegateError, messageOf, StoreError } from '../base/error.ts'
import { flag, list, type Rules, readOptions, text } from '../base/options.ts'
import { isDead } from '../engine/lease.ts'
import { eachTree, readTree, type TreeRows } from '../graph/reader.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import { FINDING_TYPES, type Finding, type FindingType, finding } from '../store/archive.ts'
import type { Ledger } from '../store/ledger.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import type { Check, Surroundings } from './check.ts'
import { background, orphans, parentage, places } from './conversation-checks.ts'
import { linkEnds, linkOutcomes, lostChildren, twins, waits } from './link-checks.ts'
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
  /** Only the tree of this root conversation. Left out: the whole store. */
  readonly rootId?: Id
  /** Only these types of findings. */
  readonly types?: readonly FindingType[]
  /** Mends what can be mended without losing anything, and looks again. */
  readonly repair?: boolean
  /** Also holds every stored record against the hashes of what was committed: finds any later change. */
  readonly verify?: boolean
}

export interface AuditReport {
  /** What is wrong; after a repair, what still is. */
  readonly findings: readonly Finding[]
  /** What was wrong and is not any more. */
  readonly repaired: readonly Finding[]
  /** How much was looked at. */
  readonly checked: {
    readonly trees: number
    readonly conversations: number
    readonly turns: number
    readonly nodes: number
    readonly links: number
  }
  /** How much was held against its hashes; null unless `verify` was asked for. A store in memory keeps none. */
  readonly verified: { readonly rows: number; readonly commits: number } | null
}

const OPTIONS: Rules<Omit<AuditOptions, 'rootId'>> = { types: list, repair: flag, verify: flag }

/** Repairs may bring others to light: so often it is looked again. */
const MAX_ROUNDS = 5

export async function audit(ledger: Ledger, options: AuditOptions = {}): Promise<AuditReport> {
  checkOptions(ledger, readOptions('audit()', options, { ...OPTIONS, rootId: text }))
  const looking = new Looking(ledger, options)
  if (options.verify === true) await looking.verify()
  try {
    if (options.rootId !== undefined) await looking.atTree(options.rootId)
    else for (const tree of eachTree(ledger.store)) await looking.at(tree)
  } catch (error) {
    looking.unreadable(error)
  }
  looking.tampered()
  return looking.report()
}

/** What concerns one conversation: its own rows, and its delegations with others. */
export async function auditConversation(
  ledger: Ledger,
  { id, rootId }: Conversation,
  options: Omit<AuditOptions, 'rootId'> = {},
): Promise<AuditReport> {
  const report = await audit(ledger, { ...readOptions('conversation.audit()', options, OPTIONS), rootId })
  const isIts = (one: Finding) => one.conversationId === id || isLinkOf(ledger, one, id)
  return { ...report, findings: report.findings.filter(isIts), repaired: report.repaired.filter(isIts) }
}

function isLinkOf({ store }: Ledger, { subject, id }: Finding, conversationId: Id): boolean {
  return subject === 'link' && store.link(id)?.childConversationId === conversationId
}

class Looking {
  private readonly ledger: Ledger
  private readonly around: Surroundings
  private readonly options: AuditOptions
  private readonly findings: Finding[] = []
  private readonly repaired: Finding[] = []
  private verified: AuditReport['verified'] = null
  private readonly counts = { trees: 0, conversations: 0, turns: 0, nodes: 0, links: 0 }

  constructor(ledger: Ledger, options: AuditOptions) {
    const { store, kinds } = ledger
    this.ledger = ledger
    this.around = { kinds, isAlive: (id) => this.isAlive(id), hasBody: (hash) => hasBody(store, hash) }
    this.options = options
  }

  /** Before anything is repaired. */
  async verify(): Promise<void> {
    const { rootId, types } = this.options
    const { archive, name } = this.ledger.store
    if (archive === undefined) throw new InputError('invalid_input', `The store "${name}" keeps no hashes to verify.`)
    const { findings, rows, commits } = await archive.verify(rootId)
    for (const one of findings) if (types === undefined || types.includes(one.type)) this.findings.push(one)
    this.verified = { rows, commits }
  }

  /** What cannot be read is a finding too; a store that is closed or busy is not. */
  unreadable(error: unknown): void {
    if (!StoreError.isInstance(error) || error.code !== 'store') throw error
    const { rootId = null } = this.options
    const place = { subject: 'store', id: this.ledger.store.name, rootId, conversationId: null } as const
    this.findings.push(finding('unreadable', place, `Rows cannot be read: ${messageOf(error)}`))
  }

  /** A tree that was changed from outside is told of, and does not hide the others. */
  async atTree(rootId: Id): Promise<void> {
    try {
      await this.at(readTree(this.ledger.store, rootId))
    } catch (error) {
      if (!isLegateError(error, 'tampered')) throw error
    }
  }

  /** What verifying has found says more. */
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
    let found = this.lookUnlessAltered(tree)
    if (found.length > 0 && this.isDeleted(tree.rootId)) return
    if (this.options.repair === true) found = await this.mend(tree, found)
    this.findings.push(...found)
  }

  report(): AuditReport {
    return { findings: this.findings, repaired: this.repaired, checked: this.counts, verified: this.verified }
  }

  /** Events are read only when a check asks for them. */
  private lookUnlessAltered(tree: TreeRows): Finding[] {
    try {
      return this.look(tree)
    } catch (error) {
      if (!isLegateError(error, 'tampered') || error.details['commit'] === undefined) throw error
      return this.alteredEvents(tree.rootId, error)
    }
  }

  /** What verifying has found says the same. */
  private alteredEvents(rootId: Id, { message, details }: LegateError): Finding[] {
    const id = `${rootId} ${details['commit']}`
    const isWanted = this.options.types?.includes('broken_chain') ?? true
    if (!isWanted || this.findings.some((one) => one.type === 'broken_chain' && one.id === id)) return []
    return [finding('broken_chain', { subject: 'commit', id, rootId, conversationId: null }, message)]
  }

  private look(tree: TreeRows): Finding[] {
    return auditTree(tree, this.around, this.options.types)
  }

  /** What is left. A repair that was refused because the rows have changed is looked at again. */
  private async mend(tree: TreeRows, first: readonly Finding[]): Promise<Finding[]> {
    let [rows, found] = [tree, [...first]]
    const before = new Map(found.map((one) => [keyOf(one), one]))
    for (let round = 0; round < MAX_ROUNDS && found.some(({ repairable }) => repairable); round++) {
      for (const one of found) if (one.repairable) await this.repair(rows, one)
      rows = readTree(this.ledger.store, tree.rootId)
      found = this.look(rows)
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

  /** Another process has deleted it while it was being read. */
  private isDeleted(rootId: Id): boolean {
    const { store } = this.ledger
    if (store.conversation(rootId) !== undefined) return false
    return store.archive?.tombstone(rootId) !== undefined
  }

  private isAlive(engineId: Id): boolean {
    const { store, clock } = this.ledger
    const engine = store.engine(engineId)
    return engine !== undefined && !isDead(engine, clock.now())
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

function checkOptions({ store }: Ledger, { rootId, types }: AuditOptions): void {
  if (rootId !== undefined && rootOf(store, rootId) !== rootId) {
    throw notFound(store, 'root conversation', rootId)
  }
  const unknown = types?.find((type) => !FINDING_TYPES.includes(type))
  if (unknown === undefined) return
  const message = `There is no finding of the type "${unknown}". There are: ${FINDING_TYPES.join(', ')}.`
  throw new InputError('invalid_input', message)
}

/** A root that was changed from outside is there to be looked at. */
function rootOf(store: Store, id: Id): Id | undefined {
  try {
    return store.conversation(id)?.rootId
  } catch (error) {
    if (isLegateError(error, 'tampered')) return id
    throw error
  }
}

/** One that was changed is there; verifying tells that it was. */
function hasBody(store: Store, hash: string): boolean {
  try {
    return store.body(hash) !== undefined
  } catch (error) {
    if (isLegateError(error, 'tampered')) return true
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

/** Everything that is wrong with the rows of a tree, of these types. What is true after every commit is not wrong. */
export function auditTree(tree: TreeRows, around: Surroundings, types?: readonly FindingType[]): Finding[] {
  const wanted = types === undefined ? undefined : new Set(types)
  const found: Finding[] = []
  for (const check of CHECKS) {
    if (wanted !== undefined && !check.types.some((type) => wanted.has(type))) continue
    for (const one of check.find(tree, around)) if (wanted === undefined || wanted.has(one.type)) found.push(one)
  }
  return found
}
