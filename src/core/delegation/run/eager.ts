import type { EagerWork, NodeRun } from '../../agent/hooks/node-run.ts'
import { guardCall, showCall } from '../../agent/hooks/tool-hooks.ts'
import { messageOf } from '../../base/error.ts'
import { sha256 } from '../../base/hash.ts'
import { deriveIds } from '../../base/id.ts'
import { canonicalJson, type Json, toJson } from '../../base/json.ts'
import type { FieldEvent } from '../../fields/field-event.ts'
import { dotPath } from '../../fields/field-path.ts'
import { fieldsAt, type PathPattern } from '../../fields/path-pattern.ts'
import { refusedOutcome } from '../../graph/conclude.ts'
import { textOf } from '../../graph/content.ts'
import type { EagerTask, OutcomeRecord } from '../../graph/outcome.ts'
import type { Id } from '../../graph/rows.ts'
import { type EagerItem, planAskedItem, planRefusedItem } from '../../rules/delegation/eager.ts'
import { childIds } from '../../rules/delegation/spawn.ts'
import type { ApprovalRequest } from '../../rules/turn/approval-of.ts'
import { untilLoaded } from '../../store/look.ts'
import { type EagerOffer, eagerOffers } from '../eager-offers.ts'
import { type Offer, spawn } from '../spawn.ts'

/**
 * Starts a child for each item of a plan while the model is still writing the plan. The ids of an item's task are
 * derived from the item, so a later try, or a restart after a crash, finds the child that exists.
 */
export class EagerChildren implements EagerWork {
  readonly patterns: readonly PathPattern[]
  private readonly run: NodeRun
  private readonly offers: readonly EagerOffer[]
  private readonly seen: Map<string, number> = new Map()

  constructor(run: NodeRun) {
    this.run = run
    this.offers = eagerOffers(run.agent)
    this.patterns = this.offers.map(({ pattern }) => pattern)
  }

  wants(event: FieldEvent): boolean {
    return this.offers.some(({ pattern }) => event.isAt(pattern))
  }

  async start(event: FieldEvent): Promise<void> {
    for (const offer of this.offers) {
      if (event.isAt(offer.pattern)) await this.ensure(offer, event.dot, event.value, this.seen)
    }
  }

  async finish(plan: Json): Promise<EagerTask[]> {
    const seen = new Map<string, number>()
    const tasks: EagerTask[] = []
    for (const offer of this.offers) {
      for (const { path, value } of fieldsAt(plan, offer.pattern)) {
        const field = dotPath(path)
        tasks.push({ taskId: await this.ensure(offer, field, value, seen), field })
      }
    }
    return tasks
  }

  /** Makes sure that the item has a task, unless the plan's claim is lost. */
  private async ensure(offer: EagerOffer, field: string, value: unknown, seen: Map<string, number>): Promise<Id> {
    const json = toJson(value)
    const item = json.ok ? json.value : null
    const digest = `${offer.path}/${sha256(canonicalJson(item))}`
    const ordinal = seen.get(digest) ?? 0
    seen.set(digest, ordinal + 1)
    const [taskId = ''] = deriveIds(this.run.turn.id, `eager/${digest}/${ordinal}`, 1)
    const known = await untilLoaded(() => this.run.tree.node(taskId))
    if (known === undefined) await this.begin(offer, { taskId, field, item })
    return taskId
  }

  private async begin(own: EagerOffer, found: EagerItem): Promise<void> {
    await own.source.prepare()
    const offer = own.offer()
    const eager = await this.hooked(offer, found)
    if ('refused' in eager) return this.refuse(offer, found, refusedOutcome('denied', eager.refused))
    const input = await inputOf(own, offer, eager)
    if ('failed' in input) return this.refuse(offer, eager, refusedOutcome('invalid_input', input.failed))
    const ids = childIds(eager.taskId, 0)
    const spawned = await spawn(this.run, { offer, input: input.value, mode: 'parked', ids, eager })
    if ('ask' in spawned) return this.ask(offer, eager, spawned.ask)
    if ('refused' in spawned) await this.refuse(offer, eager, spawned.refused)
  }

  /** Asks the hooks about an item, as they are asked about a call: they may change it or refuse it. */
  private async hooked({ name }: Offer, eager: EagerItem): Promise<EagerItem | { readonly refused: string }> {
    const { run } = this
    const above = run.conversation.depth === 0 ? null : run.home.agents.hooksAbove(run)
    if (run.hooks?.has('beforeTool') !== true && run.agent.guards === null && above === null) return eager
    const call = { id: eager.taskId, name, input: eager.item }
    const hooked = await guardCall(run, call, above)
    if ('ask' in hooked) return { refused: hooked.ask.reason }
    if ('state' in hooked) return { refused: textOf(hooked.output?.content ?? '') }
    showCall(run, hooked, above?.watching ?? [])
    return hooked === call ? eager : { ...eager, item: hooked.input }
  }

  /** Asks a person about an item. The plan continues meanwhile; its run ends once the person has answered. */
  private async ask({ name }: Offer, eager: EagerItem, ask: ApprovalRequest): Promise<void> {
    const { home, node, work } = this.run
    const request = { claim: work.claim, toolName: name }
    const plan = (draft: Parameters<typeof planAskedItem>[0]) => planAskedItem(draft, { eager, request, ask })
    await home.ledger.commit({ kind: 'ask', rootId: node.rootId, plan })
  }

  /** Records the outcome of an item that got no child. */
  private async refuse({ name, contract, agent }: Offer, eager: EagerItem, outcome: OutcomeRecord): Promise<void> {
    const { home, node, work } = this.run
    const request = { claim: work.claim, toolName: name, hostName: this.run.agent.name, contract, agent }
    const plan = (draft: Parameters<typeof planRefusedItem>[0]) => planRefusedItem(draft, { eager, request, outcome })
    await home.ledger.commit({ kind: 'spawn', rootId: node.rootId, plan })
  }
}

type ItemInput = { readonly value: unknown } | { readonly failed: string }

/** Computes the child's input: the item or the definition's mapping of it, as text if the agent takes text. */
export async function inputOf(
  own: EagerOffer,
  offer: Offer,
  { item, field }: Pick<EagerItem, 'item' | 'field'>,
): Promise<ItemInput> {
  try {
    if (own.input !== undefined) return { value: await own.input(item as never, { field }) }
  } catch (error) {
    return { failed: `The input for ${field} could not be made: ${messageOf(error)}` }
  }
  if (offer.input !== null || typeof item === 'string') return { value: item }
  return { value: JSON.stringify(item) }
}
