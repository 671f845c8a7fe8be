import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { agent, createRuntime, type Runtime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { type Commit, emptyCommit } from '../../src/core/graph/commit.ts'
import type { Conversation, Id, Link, Node, Turn } from '../../src/core/graph/rows.ts'
import { memoryStore } from '../../src/core/store/memory/index.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'

import { Graph } from './graph.ts'
import { leaveUnaudited } from './unaudited.ts'

/**
 * Two trees in one store, each of a host and its child: one that has completed, and one whose child waits for a person;
 * and a third that was put in by hand. No engine runs: what is planted stays.
 */
export class Planted {
  readonly store: LocalStore
  readonly runtime: Runtime
  readonly done: Tree
  readonly open: Tree
  readonly graph: Graph
  readonly file: string | null
  private readonly drop: () => void

  private constructor(parts: Pick<Planted, 'store' | 'file' | 'done' | 'open'>, drop: () => void) {
    this.store = parts.store
    this.file = parts.file
    this.done = parts.done
    this.open = parts.open
    this.drop = drop
    leaveUnaudited(this.store)
    this.runtime = createRuntime({ store: this.store })
    this.graph = new Graph(this.store, { kinds: { work: {} } })
  }

  static async in(kind: 'memory' | 'sqlite'): Promise<Planted> {
    const folder = mkdtempSync(path.join(tmpdir(), 'legate-'))
    const file = kind === 'sqlite' ? path.join(folder, 'rows.db') : null
    const store = file === null ? memoryStore() : sqliteStore(file)
    made ??= makeTrees()
    const { commits, done, open } = await made
    for (const commit of commits) await store.commit(commit)
    return new Planted({ store, file, done: treeOf(store, done), open: treeOf(store, open) }, () =>
      rmSync(folder, { recursive: true, force: true }),
    )
  }

  /** Rows as no rule would write them. */
  async put(rootId: Id, rows: Partial<Commit>): Promise<void> {
    await this.store.commit({ ...emptyCommit('mutate', 0, rootId), ...rows })
  }

  async change(row: Node, fields: Partial<Node>): Promise<void> {
    await this.put(row.rootId, { nodes: [next(this.store.node(row.id) ?? row, fields)] })
  }

  async changeTurn(row: Turn, fields: Partial<Turn>): Promise<void> {
    await this.put(row.rootId, { turns: [next(this.store.turn(row.id) ?? row, fields)] })
  }

  async changeLink(row: Link, fields: Partial<Link>): Promise<void> {
    await this.put(row.rootId, { links: [next(this.store.link(row.id) ?? row, fields)] })
  }

  async changeConversation(row: Conversation, fields: Partial<Conversation>): Promise<void> {
    await this.put(row.rootId, { conversations: [next(this.store.conversation(row.id) ?? row, fields)] })
  }

  /** Changes the file behind the back of the store, which has to read it again. */
  sql(text: string, ...values: readonly (string | number)[]): void {
    const db = connectTo(this.file ?? '')
    try {
      db.run(text, values)
    } finally {
      db.close()
    }
    this.store.reopen()
  }

  async close(): Promise<void> {
    await this.runtime.close()
    this.drop()
  }
}

/** A row as the next commit may put it. */
export function next<Row extends { readonly version: number }>(row: Row, fields: Partial<Row>): Row {
  return { ...row, ...fields, version: row.version + 1 }
}

export interface Tree {
  readonly root: Conversation
  readonly turn: Turn
  /** user_message, agent_message, task, agent_message */
  readonly nodes: readonly [Node, Node, Node, Node]
  readonly link: Link
  readonly child: Conversation
  readonly childTurn: Turn
  readonly childNodes: readonly Node[]
}

function treeOf(store: LocalStore, runId: Id): Tree {
  const turn = must(store.turn(runId))
  const link = must(store.linksOf(runId)[0])
  return {
    turn,
    link,
    root: must(store.conversation(turn.conversationId)),
    nodes: store.nodesOf(runId) as unknown as Tree['nodes'],
    child: must(store.conversation(link.childConversationId)),
    childTurn: must(store.turn(link.id)),
    childNodes: store.nodesOf(link.id),
  }
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a row of the planted tree is not there')
  return value
}

interface Made {
  readonly commits: readonly Commit[]
  readonly done: Id
  readonly open: Id
}

/** Made once, and put into every store commit by commit. */
let made: Promise<Made> | undefined

async function makeTrees(): Promise<Made> {
  const commits: Commit[] = []
  const memory = memoryStore()
  const store: LocalStore = {
    ...memory,
    commit: (commit) => {
      if (commit.rootId !== null) commits.push(commit)
      return memory.commit(commit)
    },
  }
  const deploy = tool({ description: 'Deploys.', input: { type: 'object' }, execute: () => 'done' })
  const writer = agent({
    name: 'writer',
    instructions: 'Write.',
    description: 'Writes.',
    model: scriptedModel(({ messages }) => {
      const isAsked = JSON.stringify(messages).includes('deploy it')
      return isAsked ? { calls: [{ name: 'deploy', input: {} }] } : 'written'
    }),
    tools: { deploy },
    grant: { ask: ['tool:deploy'] },
  })
  const editor = agent({
    name: 'editor',
    instructions: 'Edit.',
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool') return 'edited'
      return { calls: [{ name: 'ask', input: { message: JSON.stringify(last?.content) } }] }
    }),
    subagents: { ask: writer },
  })
  const runtime = createRuntime({ store, agents: [editor] })
  const done = runtime.run(editor, 'write')
  await done.result
  const open = runtime.run(editor, 'deploy it')
  for (;;) {
    if ((await runtime.approvals()).length > 0) break
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await runtime.close()
  return { commits, done: done.id, open: open.id }
}
