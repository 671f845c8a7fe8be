import { IdMap } from '../../base/collections.ts'
import type { Json } from '../../base/json.ts'
import type { Reader } from '../../graph/reader.ts'
import type { AgentRef, Conversation, Id } from '../../graph/rows.ts'
import type { AgentCore } from '../definition/agent.ts'
import { promptIn } from '../definition/agent-request.ts'
import { agentForRequest } from './asked-agent.ts'

/** A function that makes agents may make a new one each time: the newest of a name are enough to continue runs. */
const MAX_VERSIONS = 64

/** The agents that this process has code for. */
export class AgentRegistry {
  private readonly byName: Map<string, Map<string, AgentCore>> = new Map()
  /** The objects that runs of this process were started with: two agents of one name may hold different code. */
  private readonly home: IdMap<AgentCore> = new IdMap()
  private readonly known: WeakSet<AgentCore> = new WeakSet()
  private list: readonly string[] = ['']
  /** Grows with every agent that is added. */
  version = 0
  /** The request that a run was started with, from the rows. */
  askedOf: (runId: Id) => Json | undefined = () => undefined
  /** True when an agent here wants copies of its sessions with a subagent. Mostly none does. */
  copiesSessions = false

  has(agent: AgentCore): boolean {
    return this.known.has(agent)
  }

  /** Adds an agent. */
  add(agent: AgentCore): void {
    this.known.add(agent)
    this.version++
    for (const { config } of agent.subagents.values()) this.copiesSessions ||= config.session !== undefined
    const { hash } = agent.identity.ref
    const versions = this.byName.get(agent.name)
    if (versions === undefined) {
      this.byName.set(agent.name, new Map([[hash, agent]]))
      this.list = ['', ...this.byName.keys()]
      return
    }
    versions.delete(hash)
    versions.set(hash, agent)
    const [oldest = ''] = versions.keys()
    if (versions.size > MAX_VERSIONS) versions.delete(oldest)
  }

  /** True when this process has the code that an agent needs. An agent that needs none can run anywhere. */
  knows(code: string): boolean {
    return code === '' || this.byName.has(code)
  }

  /** The names of agents with code here; the empty name stands for agents that need none. */
  get names(): readonly string[] {
    return this.list
  }

  /** Binds the agent object that runs a run in this process. */
  settle(runId: Id, agent: AgentCore): void {
    this.home.set(runId, agent)
  }

  leave(runId: Id): void {
    this.home.delete(runId)
  }

  forgetHomes(): void {
    this.home.clear()
  }

  /** Forgets runs that ended in another process. */
  leaveAll(isEnded: (runId: Id) => boolean): void {
    for (const [runId] of this.home.entries()) if (isEnded(runId)) this.home.delete(runId)
  }

  /** The agent of a run: the object it was started with, else by name and hash, else the newest of the name. */
  of(runId: Id, conversation: Pick<Conversation, 'agent'>): AgentCore | undefined {
    return this.home.get(runId) ?? this.asFound(runId, this.find(conversation.agent))
  }

  /** Applies the run's request, where the rows hold one. */
  private asFound(runId: Id, agent: AgentCore | undefined): AgentCore | undefined {
    const prompt = agent === undefined ? undefined : promptIn(this.askedOf(runId))
    if (agent === undefined || prompt === undefined) return agent
    const asked = agentForRequest(agent, prompt)
    this.home.set(runId, asked)
    return asked
  }

  /** The output schema of a run; undefined where this process does not have its code. */
  outputOf(reader: Pick<Reader, 'turn' | 'conversation'>, runId: Id): AgentCore['output'] | undefined {
    const turn = reader.turn(runId)
    const conversation = turn === undefined ? undefined : reader.conversation(turn.conversationId)
    return conversation === undefined ? undefined : this.of(runId, conversation)?.output
  }

  /** The object a run was started with, if this process started it. */
  homeOf(runId: Id): AgentCore | undefined {
    return this.home.get(runId)
  }

  /** An agent that is stored whole in its row must not be mistaken for another of its name. */
  private find({ name, hash, inline }: AgentRef): AgentCore | undefined {
    if (inline !== undefined) return undefined
    const versions = this.byName.get(name)
    if (versions === undefined) return undefined
    return versions.get(hash) ?? [...versions.values()].at(-1)
  }
}
