import { defineAgent } from '../../core/agent/build/definition.ts'
import { withIdentity } from '../../core/agent/build/identity.ts'
import type { InlineServices } from '../../core/agent/build/inline-code.ts'
import type { AgentCore, AnswerProtocol, GroupCore, RunFacts, Sources } from '../../core/agent/definition/agent.ts'
import type { CallGuards } from '../../core/agent/definition/call-guards.ts'
import type { FileLayers } from '../../core/agent/definition/file-layers.ts'
import type { NodeRun } from '../../core/agent/hooks/node-run.ts'
import type { Json } from '../../core/base/json.ts'
import { type RowToolEnd, rowTool } from '../../core/delegation/background/row-tool.ts'
import { EVERYTHING, type Grant, type Layer, narrowingDelegateLayer, narrowingLayer } from '../../core/grant/grant.ts'
import type { Model } from '../../core/model/model.ts'
import { markFacts, type Tool } from '../../core/tool/tool.ts'
import type { ToolSelection } from '../agent-file/agent-file.ts'
import type { FileHook } from '../agent-file/file-hook.ts'
import type { RetryConfig } from '../agent-file/recipe.ts'
import { isBuiltIn, sourcesOfFile } from '../extension/extension-sources.ts'
import { type InlineAgent, inheritedTools, type Kit, readInline } from '../inline/inline-agent.ts'
import { MODES, STOP, SURFACES } from '../inline/spec.ts'
import { openTools } from '../open/tools.ts'
import { memoryOf, tellingMemory } from './agent-memory.ts'
import { CHECK, type CheckPlace, FINAL_OUTPUT, finalOutputTool, finalOutputWords, ON_FAILURE } from './final-output.ts'

/** Builds the agent that a row holds. */
export function inlineCore(stored: Json, surroundings: InlineServices): AgentCore | undefined {
  const inline = readInline(stored)
  const host = surroundings.host()
  if (host === undefined && (inline.inherits !== null || needsHostsCode(inline))) return undefined
  return buildCore(inline, host, surroundings.modelNamed)
}

/** Builds the agent that a call describes, with what it takes over from its host. */
export function makeCore(definition: Json, host: AgentCore, modelNamed: (name: string) => Model): AgentCore {
  return buildCore(readInline(definition), host, modelNamed)
}

/** Tells whether the agent needs its host's code: a child without its own model must get its host's. */
function needsHostsCode({ role, model }: InlineAgent): boolean {
  return role === 'child' && model === null
}

/** Builds an agent from data, and from its host's tools if it takes them over. */
export function buildCore(
  inline: InlineAgent,
  host: AgentCore | undefined,
  modelNamed: (name: string) => Model,
): AgentCore {
  const taken = inheritedTools(inline, host)
  const { identity, ...core } = defineAgent({
    name: inline.name,
    description: inline.description,
    instructions: inline.instructions,
    ...(inline.prompt === null ? {} : { prompt: inline.prompt }),
    settings: inline.settings,
    tools: ownTools(inline),
    sources: ownSources(inline, taken),
    ...(inline.input === null ? {} : { input: inline.input }),
    ...(inline.output === null ? {} : { output: inline.output }),
    ...(inline.grant === null ? {} : { grant: inline.grant }),
    budget: inline.budget,
  })
  const kit = withHost(core, taken)
  return withIdentity({
    ...core,
    ...kit,
    model: inline.model === null ? null : modelNamed(inline.model),
    isModelOfFile: inline.namesModel === true,
    protocol: protocolOf(inline),
    guards: guardsIn(inline),
    ...(inline.remembers === undefined ? {} : { extensions: [tellingMemory(inline)] }),
    inline: {
      definition: inline as unknown as Json,
      model: inline.model,
      code: codeNeeded(inline, host),
    },
    fileLayers: fileLayersOf(inline),
  })
}

/** The working folder if a model has chosen it: then it is part of what is decided. */
function chosenFolder({ cwd, definitions }: InlineAgent): string | null {
  return cwd === definitions ? null : cwd
}

function ownTools(inline: InlineAgent): { readonly [name: string]: Tool } {
  const { response, retry, cwd, open } = inline
  return {
    ...(open === null ? {} : openTools(open)),
    ...(response === null ? {} : { [FINAL_OUTPUT]: finalOutputTool(response) }),
    ...(retry === null ? {} : retryTools(retry, { cwd, folder: chosenFolder(inline) })),
    ...(endingHooks(inline).length === 0 ? {} : { [STOP]: stopTool(inline) }),
  }
}

/** Builds the agent's own sources; a server it only names comes from its host. */
function ownSources(inline: InlineAgent, taken: Kit): Sources {
  const { extensions, cwd, definitions } = inline
  const memory = memoryOf(inline)
  const wanted = extensions.filter(({ name }) => !isBuiltIn(name))
  const named = Object.fromEntries(taken.sources)
  const { files = NO_FILES, withheld = null } = inline
  const origin = { by: 'file', files, withheld } as const
  const options = { cwd, folder: chosenFolder(inline), skills: { cwd: definitions }, named, origin }
  return sourcesOfFile(wanted, memory === undefined ? options : { ...options, memory }).sources
}

const NO_FILES: readonly string[] = []

/** Merges the host's tools with its own; its own win. */
function withHost(
  { tools, sources, groups, meta }: Pick<AgentCore, 'tools' | 'sources' | 'groups' | 'meta'>,
  taken: Kit,
): Kit {
  const merged: ReadonlyMap<string, GroupCore> = new Map([...taken.groups, ...groups])
  return {
    tools: new Map([...taken.tools, ...tools]),
    sources: new Map([...taken.sources, ...sources]),
    groups: merged,
    meta: merged.size === 0 ? meta : taken.meta,
  }
}

/**
 * The layers of its file and its mode. Each starts from everything, because the agent's grant and its hosts say what it
 * has.
 */
function fileLayersOf({ name, narrowing, neverAsks, mode, tools }: InlineAgent): FileLayers {
  const isChosen = tools.allow !== null || tools.deny.length > 0
  const unasked = neverAsks === undefined ? {} : { neverAsks }
  const isSilent = narrowing === null && neverAsks === undefined
  const others = (layer: (by: string, grant: Grant) => Layer): readonly Layer[] => [
    ...(isSilent ? [] : [{ ...layer(`the file of ${name}`, withShellFolder(narrowing ?? {})), ...unasked }]),
    ...(mode === 'auto' ? [] : [layer(`the mode ${mode}`, MODES[mode])]),
  ]
  return {
    tools: isChosen ? narrowingLayer(`the tool list of ${name}`, chosenTools(tools)) : null,
    use: others(narrowingLayer),
    delegate: others(narrowingDelegateLayer),
  }
}

/** Lets a file that allows programs start them in the workspace, which reveals nothing of it. */
function withShellFolder(grant: Grant): Grant {
  const { use } = grant
  const startsNone = use === undefined || !use.some((rule) => rule.startsWith('exec:'))
  return startsNone ? grant : { ...grant, use: [...use, 'file.list:/workspace'] }
}

/** Turns a file's tool list into a grant that binds all tools, wherever they come from. */
function chosenTools({ allow, deny }: ToolSelection): Grant {
  const others = EVERYTHING.filter((rule) => !rule.startsWith('tool:'))
  const chosen = allow === null ? ['*'] : [...allow, ...DELEGATION_TOOLS]
  return { use: [...others, ...chosen.map(toolRule)], deny: deny.map(toolRule) }
}

function toolRule(pattern: string): string {
  return `tool:${pattern}`
}

/** Another rule decides whether a file may delegate. */
const DELEGATION_TOOLS = [...SURFACES, 'load']

/** The nearest agent above that is code, if anything of it is needed. */
function codeNeeded(inline: InlineAgent, host: AgentCore | undefined): string {
  if (host === undefined || (inline.inherits === null && inline.model !== null)) return ''
  return host.inline === null ? host.name : host.inline.code
}

function protocolOf(inline: InlineAgent): AnswerProtocol {
  const { role, context, response, retry, open, summary } = inline
  return {
    writeInstructions: (told) => {
      const parts = [
        role === 'child' ? childWords(told, open?.nested === true) : told.instructions,
        context === null ? '' : referenceWords(context),
        summary ? SUMMARY : '',
        response === null ? '' : finalOutputWords(response),
      ]
      return parts.filter((part) => part !== '').join('\n\n')
    },
    finalTool: response === null ? null : FINAL_OUTPUT,
    checkTool: retry !== null ? CHECK : endingHooks(inline).length > 0 ? STOP : null,
  }
}

/** Tells a child about itself, before its task. */
function childWords({ instructions, id, turns, tools }: RunFacts, mayDelegate: boolean): string {
  const limits = [
    'Work on your own: nobody answers questions. Where something is unclear, take the plainest reading and say so.',
    `You have at most ${turns} turns, one for each answer of yours. Call tools only where they help, several at once where they do not depend on each other, and end before the turns do.`,
    mayDelegate ? '' : 'You cannot start subagents of your own.',
    'Write Markdown. If a summary is asked for, it is your last message.',
  ].filter((line) => line !== '')
  const shown = tools.length === 0 ? 'none' : tools.join(', ')
  return `You are a subagent: a specialised agent that does one task for another agent and reports to it.

${limits.map((line) => `- ${line}`).join('\n')}

Your id: ${id}
Your tools (${tools.length}): ${shown}

# Task instructions

${instructions === '' ? 'Do what the first message asks.' : instructions}`
}

/** The four duties of a last message that is all its reader gets. */
const SUMMARY = `# Your last message

The agent that gave you this task receives only your last message, nothing else of your work. End with a summary that is complete but short:
1. what you were asked to do,
2. what you did,
3. what came of it,
4. findings and recommendations that matter.`

function referenceWords(context: string): string {
  return `# Reference material

${context}`
}

/**
 * Makes the checks of a recipe, as tasks after an answer. If one fails, everything starts again from the input, after
 * `on_failure`; without tries left the run fails. The grant decides on each command as on those of the shell: `exec:npm
 * test`, or `exec:sh -c ...` if it needs a shell.
 */
function retryTools(retry: RetryConfig, place: CheckPlace): { readonly [name: string]: Tool } {
  const onFailure = retry.onFailure === null ? {} : { [ON_FAILURE]: taskTool(ON_FAILURE, retry, place) }
  return { [CHECK]: taskTool(CHECK, retry, place), ...onFailure }
}

/** The guards that its hooks are, where any looks at calls. */
function guardsIn(inline: InlineAgent): CallGuards | null {
  const { hooks = [], cwd } = inline
  if (!hooks.some(({ event }) => event === 'PreToolUse' || event === 'PostToolUse')) return null
  const place = { cwd, folder: chosenFolder(inline) }
  // Loaded with the first call that is guarded.
  const guards = async () => (await import('../hooks/guards.ts')).guardsOf(hooks, place)
  return {
    before: async (run, call) => (await guards()).before(run, call),
    after: async (run, end) => (await guards()).after(run, end),
  }
}

/** The hooks that look at the end of the agent, run directly or as a subagent. */
function endingHooks({ hooks = [], role }: InlineAgent): readonly FileHook[] {
  return hooks.filter(({ event }) => event === 'Stop' || (event === 'SubagentStop' && role === 'child'))
}

function stopTool(inline: InlineAgent): Tool {
  const stop = { hooks: endingHooks(inline), place: { cwd: inline.cwd, folder: chosenFolder(inline) } }
  return afterAnswer(STOP, async (run) => (await import('../hooks/run-stop.ts')).runStopHooks(run, stop))
}

function taskTool(name: string, retry: RetryConfig, place: CheckPlace): Tool {
  return afterAnswer(name, async (run) => (await import('./run-checks.ts')).runChecks(run, name, { retry, ...place }))
}

/** Makes a tool that no model sees or may call: it runs only after an answer. */
function afterAnswer(name: string, operation: (run: NodeRun) => Promise<RowToolEnd>): Tool {
  const made = rowTool({
    name,
    description: 'Runs by itself after an answer.',
    input: { type: 'object', properties: {} },
    alsoTakes: 'all',
    startsChild: false,
    needsGrant: false,
    isShown: () => false,
    operation,
  })
  return markFacts(made, { works: 'programs' })
}
