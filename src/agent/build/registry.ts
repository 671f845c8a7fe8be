import { IdMap } from '../../base/collections.ts'
import type { Json } from '../../base/json.ts'
import type { Reader } from '../../graph/reader.ts'
import type { AgentRef, Conversation, Id } from '../../graph/rows.ts'
import type { AgentCore } from '../definition/agent.ts'
import { promptIn } from '../definition/agent-request.ts'
import { askedAgent } from './asked-agent.ts'

/** A function that makes agents may make a new one each time: the newest of a name are enough to go on with. */
const MAX_VERSIONS = 64

/** The agents a process has code for. */
export class AgentRegistry {
  private readonly byName: Map<string, Map<string, AgentCore>> = new Map()
  /** The very objects that runs of this process were started with: two of one name may have other code inside. */
  private readonly home: IdMap<AgentCore> = new IdMap()
  private readonly known: WeakSet<AgentCore> = new WeakSet()
  private list: readonly string[] = ['']
  /** Grows with every agent that becomes known. */
  version = 0
  /** What a run was asked with, as the rows keep it. */
  askedOf: (runId: Id) => Json | undefined = () => undefined
  /** Does any agent here want copies of the conversations with a subagent? Mostly none does. */
  copiesSessions = false

  has(agent: AgentCore): boolean {
    return this.known.has(agent)
  }

  /** Makes an agent known. */
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

  /** Is there the code that an agent needs? One that needs none can run anywhere. */
  knows(code: string): boolean {
    return code === '' || this.byName.has(code)
  }

  /** Whose code there is; the empty name stands for agents that need none. */
  get names(): readonly string[] {
    return this.list
  }

  /** Says which object does a run in this process. */
  settle(runId: Id, agent: AgentCore): void {
    this.home.set(runId, agent)
  }

  leave(runId: Id): void {
    this.home.delete(runId)
  }

  forgetHomes(): void {
    this.home.clear()
  }

  /** Forgets runs that have ended elsewhere. */
  leaveAll(isEnded: (runId: Id) => boolean): void {
    for (const [runId] of this.home.entries()) if (isEnded(runId)) this.home.delete(runId)
  }

  /** The agent of a run: the object it was started with, else by name and hash, else the newest of the name. */
  of(runId: Id, conversation: Pick<Conversation, 'agent'>): AgentCore | undefined {
    return this.home.get(runId) ?? this.asFound(runId, this.find(conversation.agent))
  }

  /** As its request has it, where the rows keep one. */
  private asFound(runId: Id, agent: AgentCore | undefined): AgentCore | undefined {
    const prompt = agent === undefined ? undefined : promptIn(this.askedOf(runId))
    if (agent === undefined || prompt === undefined) return agent
    const asked = askedAgent(agent, prompt)
    this.home.set(runId, asked)
    return asked
  }

  /** What the answer of a run must be; undefined where its code is not known here. */
  outputOf(reader: Pick<Reader, 'turn' | 'conversation'>, runId: Id): AgentCore['output'] | undefined {
    const turn = reader.turn(runId)
    const conversation = turn === undefined ? undefined : reader.conversation(turn.conversationId)
    return conversation === undefined ? undefined : this.of(runId, conversation)?.output
  }

  /** The object a run was started with, where it was started in this process. */
  homeOf(runId: Id): AgentCore | undefined {
    return this.home.get(runId)
  }

  /** One that is kept whole in its row is not to be mistaken for another of its name. */
  private find({ name, hash, inline }: AgentRef): AgentCore | undefined {
    if (inline !== undefined) return undefined
    const versions = this.byName.get(name)
    if (versions === undefined) return undefined
    return versions.get(hash) ?? [...versions.values()].at(-1)
  }
}
