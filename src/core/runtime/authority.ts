import { storedProfileLayer } from '../agent/build/conversation-settings.ts'
import type { AgentCore } from '../agent/definition/agent.ts'
import { fileDelegateLayers, fileUseLayers } from '../agent/definition/file-layers.ts'
import { grantAt, namedSecrets, offerLayers } from '../delegation/child-authority.ts'
import { type Budget, childLimits, codeBudget, limitsOf, moneyOf, treeLimitOf } from '../grant/budget.ts'
import { budgetsIn, layersForChildren, layersForSelf } from '../grant/ceiling.ts'
import { delegateLayer, hasSameRules, type Layer, useLayer } from '../grant/grant.ts'
import type { Profiles } from '../grant/profile.ts'
import { hostOf, type RunPlace, type TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Turn } from '../graph/rows.ts'
import type { TurnBounds } from '../rules/turn/open-turn.ts'

/** Whoever knows the agents of runs. */
interface AgentSource {
  of(tree: TreeReader, runId: Id, conversation: Conversation): AgentCore | undefined
}

/** Layers that stand beside those of the rows and the agents. */
export interface StandingRules {
  readonly agents: AgentSource
  readonly profiles: Profiles
  readonly runtimeLayer: readonly Layer[]
}

/**
 * Every layer that decides for an agent in a run: the frozen ones of conversation and turn, and those that the runtime, its hosts
 * and the agent itself say now. Nothing said later widens what was frozen.
 */
export function layersAt(
  agent: AgentCore,
  place: RunPlace,
  profile: string | undefined,
  { agents, profiles, runtimeLayer }: StandingRules,
): readonly Layer[] {
  const { turn, conversation } = place
  const asked = layersForSelf(turn.ceiling)
  // The limit of a day is no rule: a layer that has one is kept whatever else says the same.
  const isAsked = (layer: Layer) => layer.perDay === undefined && asked.some((one) => hasSameRules(one, layer))
  const frozen = [...asked, ...layersForSelf(conversation.ceiling).filter((layer) => !isAsked(layer))]
  const stored = profile === undefined ? [] : [storedProfileLayer(profile, profiles)]
  const own = useLayer(agent.name, grantAt(agent, conversation.depth), namedSecrets(agent))
  const said = [...saidAbove(place, agents, profiles), ...stored, ...fileUseLayers(agent), own]
  const isNew = (layer: Layer) => !frozen.some((one) => hasSameRules(one, layer))
  return [...runtimeLayer.filter(isNew), ...frozen, ...said.filter(isNew)]
}

/** The layers that the run at the top of a tree passes on to everything below. Without the code of its agent only what is frozen is known. */
export function layersPassedOn(
  agent: AgentCore | undefined,
  { turn, conversation }: RunPlace,
  profile: string | undefined,
  { profiles, runtimeLayer }: StandingRules,
): readonly Layer[] {
  const stored = profile === undefined ? [] : [storedProfileLayer(profile, profiles)]
  const passed = [
    ...runtimeLayer,
    ...layersForChildren(turn.ceiling),
    ...layersForChildren(conversation.ceiling),
    ...stored,
  ]
  if (agent === undefined) return passed
  return [...passed, ...fileDelegateLayers(agent), delegateLayer(agent.name, grantAt(agent, conversation.depth))]
}

/** The layers that its hosts pass on and the offers they make today: a change narrows at the next node. */
function saidAbove(place: RunPlace, agents: AgentSource, profiles: Profiles): Layer[] {
  const said: Layer[] = []
  for (const { agent, conversation, toolName } of hostsAbove(agents, place)) {
    if (agent === undefined) continue
    said.push(delegateLayer(agent.name, grantAt(agent, conversation.depth)), ...offerNow(agent, toolName, profiles))
  }
  return said
}

/** A run above another, with its agent and the tool that started the run below it. */
export interface HostAbove extends RunPlace {
  /** Undefined where this process has no code for it. */
  readonly agent: AgentCore | undefined
  readonly toolName: string
}

/** The hosts of a run, the nearest first. */
export function* hostsAbove(agents: AgentSource, place: RunPlace): Generator<HostAbove> {
  let below = place
  for (let host = hostOf(below); host !== undefined; host = hostOf(below)) {
    const { tree, turn, conversation } = host
    const toolName = tree.link(below.turn.id)?.toolName ?? ''
    yield { tree, turn, conversation, agent: agents.of(tree, turn.id, conversation), toolName }
    below = host
  }
}

/** A tool that offers nothing, or no longer, adds no layer. */
function offerNow({ name: hostName, subagents, eager }: AgentCore, name: string, profiles: Profiles): readonly Layer[] {
  const config = subagents.get(name)?.config ?? eager?.get(name)?.config
  if (config === undefined) return []
  return offerLayers(hostName, { name, grant: config.grant, profile: config.profile }, profiles)
}

export interface BoundBy {
  readonly tree: TreeReader
  /** The layers that the turn will have. */
  readonly ceiling: Turn['ceiling']
  /** Undefined where this process has no code for it. */
  readonly agent: AgentCore | undefined
  /** The application's. */
  readonly budget: Budget | undefined
}

/** The bounds of a turn put in by hand: the smallest that its agent, those above it and the application set (I1). */
export function turnBounds(conversation: Conversation, { tree, agent, budget, ceiling }: BoundBy): TurnBounds {
  const { parentTurnId } = conversation
  const own = [
    agent === undefined
      ? lastBudget(tree, conversation)
      : agent.reply === null
        ? agent.budget
        : codeBudget(agent.budget),
    budget,
  ]
  const above = [...budgetsIn(conversation.ceiling), ...budgetsIn(ceiling)]
  const host = parentTurnId === null ? undefined : tree.turn(parentTurnId)
  const limits = host === undefined ? limitsOf([...own, ...above]) : childLimits(own, above, host.limits.depth)
  return { limits, money: moneyOf([...own, ...above]), treeLimit: treeLimitOf(own) }
}

/** The bounds of the last turn, for processes that do not know its agent. */
function lastBudget(tree: TreeReader, { id, lane }: Conversation): Budget | undefined {
  const own = tree.turnsOf(id, { limit: 1 })
  const [last] = own.length > 0 || lane?.from == null ? own : tree.turnsOf(lane.from.laneId, { limit: 1 })
  if (last === undefined) return undefined
  return budgetOf({ limits: last.limits, money: last.spend?.limit ?? null, treeLimit: last.tree?.limit ?? null })
}

export function budgetOf({ limits, money, treeLimit }: TurnBounds): Budget {
  return {
    ...limits,
    ...(money?.tokens == null ? {} : { tokens: money.tokens }),
    ...(money?.usd == null ? {} : { usd: money.usd }),
    ...(treeLimit == null ? {} : { treeConcurrency: treeLimit }),
  }
}
