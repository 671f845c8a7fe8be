// Push notifications of A2A: webhooks that hear of one run, in the form of that protocol.
//
// Must stay true:
//   - They are webhooks in everything else: whose they are, where they may go, signed, in order, tried again.
//   - A peer is told that a run waits only if it may answer.

import { look } from '../../doors/rows.ts'
import type { Runtime } from '../../index.ts'
import type { Maker } from '../identity/tokens.ts'
import { endState, type PushConfig, type PushStore, pushBody } from '../protocols/a2a/write.ts'
import type { Deliveries } from './deliveries.ts'
import { type HookMessage, messageIdOf, messagesAbout, newDelivery } from './messages.ts'
import { makeSecret } from './signature.ts'
import type { HookPush, StoredHook, Webhooks } from './webhooks.ts'

type Store = Runtime['store']

export interface PushParts {
  readonly store: Store
  readonly webhooks: Webhooks
  readonly deliveries: Deliveries
}

const SECRET = 'whsec_'
const MOST_EVENTS = 10_000

/** The push notifications that one caller may know of. */
export class HookPushes implements PushStore {
  private readonly parts: PushParts
  private readonly maker: Maker

  constructor(parts: PushParts, maker: Maker) {
    this.parts = parts
    this.maker = maker
  }

  check({ url }: PushConfig): Promise<void> {
    return this.parts.webhooks.checkPush(this.maker, url)
  }

  async make(runId: string, config: PushConfig, since?: number): Promise<PushConfig> {
    const { url, token } = config
    const configId = config.id === '' ? runId : config.id
    const secret = token.startsWith(SECRET) ? token : makeSecret()
    const push = { runId, configId, headers: headersOf(config) }
    const createdAt = since ?? Date.now()
    const hook = await this.parts.webhooks.makePush(this.maker, { url, secret, createdAt, push })
    if (since !== undefined) await this.tellSince(hook, push)
    return { ...shown(hook, push), token: token === '' ? secret : token }
  }

  async list(runId: string): Promise<readonly PushConfig[]> {
    const found = await this.parts.webhooks.pushes(this.maker, runId)
    return found.flatMap((hook) => (hook.data.push === undefined ? [] : [shown(hook, hook.data.push)]))
  }

  async remove(runId: string, id: string): Promise<void> {
    const found = await this.parts.webhooks.pushes(this.maker, runId)
    const hook = found.find(({ data }) => data.push?.configId === id)
    if (hook !== undefined) await this.parts.webhooks.remove(hook.row.id, this.maker)
  }

  /** The run began before the webhook was there: what the courier has passed already is stored here. */
  private async tellSince(hook: StoredHook, push: HookPush): Promise<void> {
    const { store, deliveries } = this.parts
    const rootId = await store.rootOf(push.runId)
    if (rootId === undefined) return
    const { root, from } = await look(store, rootId, (tree) => ({
      root: tree.conversation(rootId),
      from: tree.turn(push.runId)?.afterSeq ?? 0,
    }))
    if (root === undefined) return
    const change = { rootId, agent: root.agent.name, owner: root.owner }
    const events = await store.events(rootId, from, MOST_EVENTS)
    for (const message of events.flatMap((event) => messagesAbout(event, change))) {
      const isWanted =
        hook.data.types.includes(message.type) && isAbout(hook, await topRunOf(store, rootId, message.runId))
      const id = `${hook.row.id}.${messageIdOf(change, message)}`
      if (!isWanted || (await deliveries.isOver(id))) continue
      await deliveries.put(id, root.owner, newDelivery(hook.row.id, change, message))
    }
  }
}

function headersOf({ token, authentication }: PushConfig): Record<string, string> {
  const given = { token: token.startsWith(SECRET) ? '' : plain(token), scheme: plain(authentication?.scheme ?? '') }
  const credentials = plain(authentication?.credentials ?? '')
  return {
    ...(given.token === '' ? {} : { 'x-a2a-notification-token': given.token }),
    ...(given.scheme === '' ? {} : { authorization: `${given.scheme} ${credentials}`.trim() }),
  }
}

/** A header has no line breaks and nothing but ASCII. */
function plain(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '').slice(0, 4_000)
}

/** Secrets are not shown again. */
function shown({ data }: StoredHook, { configId }: HookPush): PushConfig {
  return { id: configId, url: data.url, token: '', authentication: null }
}

/** Does a webhook hear of this run? */
export function isAbout({ data }: StoredHook, topRunId: string): boolean {
  return data.push === undefined || data.push.runId === topRunId
}

/** The run at the root that a run is, or is below of. */
export async function topRunOf(store: Store, rootId: string, runId: string): Promise<string> {
  return look(store, rootId, (tree) => {
    let top = runId
    for (let link = tree.link(top); link !== undefined; link = tree.link(top)) top = link.hostTurnId
    return top
  })
}

/** The body that is sent. */
export async function pushText(store: Store, rootId: string, push: HookPush, message: HookMessage): Promise<string> {
  const turn = await look(store, rootId, (tree) => tree.turn(push.runId))
  const outcome = message.type === 'run.ended' ? turn?.outcome : undefined
  const state = outcome == null ? 'TASK_STATE_INPUT_REQUIRED' : endState(outcome)
  const place = { taskId: push.runId, contextId: turn?.conversationId ?? '' }
  return JSON.stringify(pushBody(place, state, message.at))
}
