import type { AgentCore } from '../agent/definition/agent.ts'
import { after, type Later } from '../base/maybe.ts'
import type { Commit } from '../graph/commit.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import { type SessionDocument, sessionDocument } from '../rules/delegation/session-document.ts'
import { look } from '../store/look.ts'
import { readSessionSettings, type SessionStore } from '../store/session-store.ts'
import type { Store } from '../store/store.ts'

export interface SessionCopiesOptions {
  readonly store: Store
  readonly registry: CopyRegistry
  /** Reports a copy that failed. The answer itself is unaffected. */
  readonly report: (error: unknown) => void
}

interface CopyRegistry {
  of(tree: TreeReader, runId: Id, conversation: Conversation): AgentCore | undefined
}

interface SessionCopy {
  readonly store: SessionStore
  readonly document: SessionDocument
}

/**
 * Keeps the copies that hosts store of conversations with their subagents: one after every turn, one session at a time.
 */
export class SessionCopies {
  private readonly options: SessionCopiesOptions
  private readonly writing: Map<Id, Promise<void>> = new Map()

  constructor(options: SessionCopiesOptions) {
    this.options = options
  }

  committed({ turns, conversations }: Commit): void {
    for (const turn of turns) if (turn.state === 'ended') this.copy(turn)
    for (const { id, rootId, metadata } of conversations)
      if (metadata['closed_at'] !== undefined) this.copyLast(id, rootId)
  }

  /** Resolves when every copy that was started is finished. */
  async settled(): Promise<void> {
    while (this.writing.size > 0) await Promise.all(this.writing.values())
  }

  /** Deletes the copies of all sessions of a tree, in the stores that the agents of this process name. */
  async drop(rootId: Id): Promise<void> {
    await this.settled()
    const { store } = this.options
    for (const { id } of await store.conversations({ rootId, limit: Number.MAX_SAFE_INTEGER })) {
      const copies = await look(store, rootId, (tree) => {
        const [last] = tree.turnsOf(id, { limit: 1 })
        return last === undefined ? undefined : this.storeOf(tree, last)
      })
      await copies?.delete?.(id)
    }
  }

  private copyLast(conversationId: Id, rootId: Id): void {
    const newest = look(this.options.store, rootId, (tree) => tree.turnsOf(conversationId, { limit: 1 })[0])
    const found = after(newest, (last) => {
      if (last !== undefined) this.copy(last)
    })
    if (found instanceof Promise) this.wait(conversationId, found)
  }

  private copy(turn: Turn): void {
    const copied = after(this.read(turn), (copy) => this.save(turn.conversationId, copy))
    if (copied instanceof Promise) this.wait(turn.conversationId, copied)
  }

  /** The document of a session and where it is copied to; undefined where it is copied nowhere. */
  private read(turn: Turn): Later<SessionCopy | undefined> {
    try {
      return look(this.options.store, turn.rootId, (tree) => {
        const store = this.storeOf(tree, turn)
        const document = store === undefined ? undefined : sessionDocument(tree, turn.conversationId)
        return store === undefined || document === undefined ? undefined : { store, document }
      })
    } catch (error) {
      this.options.report(error)
      return undefined
    }
  }

  private save(id: Id, copy: SessionCopy | undefined): void {
    if (copy === undefined) return
    const { store, document } = copy
    try {
      const before = this.writing.get(id)
      const saved = before === undefined ? store.save(document) : before.then(() => store.save(document))
      if (saved instanceof Promise) this.wait(id, saved)
    } catch (error) {
      this.options.report(error)
    }
  }

  /**
   * Finds the session store in the current definition of the host whose tool started the run; undefined if no tool did.
   */
  private storeOf(tree: TreeReader, turn: Turn): SessionStore | undefined {
    const { registry } = this.options
    const link = tree.link(turn.id)
    const host = link === undefined ? undefined : tree.conversation(link.hostConversationId)
    if (link === undefined || host === undefined) return undefined
    const config = registry.of(tree, link.hostTurnId, host)?.subagents.get(link.toolName)?.config
    return readSessionSettings(config?.session, link.toolName).store
  }

  private wait(id: Id, saved: Promise<void>): void {
    const done = saved.catch(this.options.report).then(() => {
      if (this.writing.get(id) === done) this.writing.delete(id)
    })
    this.writing.set(id, done)
  }
}
