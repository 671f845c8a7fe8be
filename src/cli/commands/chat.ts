import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AgentFile, discover, readDefinition } from '../../doors/recipe.ts'
import { openTopRuns } from '../../doors/rows.ts'
import { diskFiles } from '../../doors/tools.ts'
import { type AnyAgent, createRuntime, type Id, type Run, type Runtime, type RuntimeOptions } from '../../index.ts'
import { ASSISTANT, chatAgent, isExit, type KnownNames, localReply, mentions } from '../chat/chat-agent.ts'
import { ChatView, promptForMessage, showLastRounds } from '../chat/chat-view.ts'
import { type Call, CliError, EXIT, listOption, textOption } from '../command/command.ts'
import { legate, shellWord } from '../command/next-command.ts'
import { callGrant } from '../definition/call-grant.ts'
import { modelOfCommand, provideSecrets } from '../definition/input.ts'
import { compatOf, loadFor, refuseFileOptions, tellsProject } from '../definition/load.ts'
import { type ModuleAgent, moduleAgentFor } from '../definition/module-agent.ts'
import { printNotices } from '../definition/notices.ts'
import { findConversation, shownId } from '../store/find-run.ts'
import { openStore, storeOf } from '../store/open-store.ts'
import { oneLine } from '../terminal/clean.ts'
import { note, writeExactly } from '../terminal/output.ts'
import { cut } from '../terminal/width.ts'
import { viewFor } from '../watch/view.ts'
import { folderOf, modelNameOf, neededCode } from '../watch/words.ts'
import { InlineAsk, respondersFor } from '../worker/inline-ask.ts'
import { type ScopedStore, scopedStore } from '../worker/scoped-store.ts'
import { answerOfRun, reportFailure } from '../worker/verdict.ts'
import { sendMessage, Worker } from '../worker/worker.ts'

const PROMPT = '> '
const ARRIVED_MS = 100
/** How much is shown of a message that was not sent. */
const LONGEST = 60
/** Exit codes after which a chat without a person takes no further message. */
const ENDS_CHAT: readonly number[] = [EXIT.parked, EXIT.interrupted, EXIT.terminated]

/** Chats with an agent turn by turn, and keeps the conversation in the store. */
export async function chat(call: Call): Promise<number> {
  const coded = await moduleAgentFor(call)
  if (coded !== undefined) {
    refuseFileOptions(call)
    return new ChatLoop(call, codedParts(coded)).hold()
  }
  const compat = compatOf(call)
  const grant = callGrant(call)
  const kept = await continuedParts(call)
  if (kept !== undefined) return new ChatLoop(call, kept).hold()
  const definition = call.words[0] === undefined ? ASSISTANT : await loadFor(call)
  printNotices(definition, call.env)
  const model = await modelOfCommand(definition, textOption(call, 'model'))
  const agent = await chatAgent(definition, model, { ...compat, grant, projectFiles: tellsProject(call) })
  await provideSecrets(agent, call.env)
  const { name } = agent
  return new ChatLoop(call, { agent, name, model, definition, folder: process.cwd() }).hold()
}

function codedParts({ agent, options, file }: ModuleAgent): ChatParts {
  const { name, input, model } = agent
  if (input !== null) {
    throw new CliError(
      `"${oneLine(name)}" takes JSON input with a schema and cannot chat: ${legate(`run ${oneLine(shellWord(file))}`)}.`,
      EXIT.usage,
    )
  }
  const shown = model?.id ?? (typeof options.model === 'string' ? options.model : 'the model of its runtime')
  return { agent, name, model: shown, definition: ASSISTANT, folder: process.cwd(), options }
}

/** Finds the agent of `--continue` without a file: the conversation's row holds it. */
async function continuedParts(call: Call): Promise<ChatParts | undefined> {
  const ending = textOption(call, 'continue')
  if (ending === undefined || call.words[0] !== undefined) return undefined
  const store = openStore(call, 'read')
  try {
    const row = await findConversation(store, ending)
    const { name } = row.agent
    if (name === ASSISTANT.name || neededCode(row) !== '') return undefined
    for (const option of ['model', 'compat', 'allow', 'deny']) {
      if (textOption(call, option) === undefined && listOption(call, option).length === 0) continue
      throw new CliError(`"${oneLine(name)}" keeps its ${option}. Name its file to change that.`, EXIT.usage)
    }
    const model = await modelOfCommand(undefined, modelNameOf(row))
    const folder = folderOf(row) ?? process.cwd()
    if (!existsSync(folder)) {
      throw new CliError(
        `"${oneLine(name)}" works in ${oneLine(folder)}, which no longer exists. Create it and try again.`,
      )
    }
    return { agent: null, name, model, definition: ASSISTANT, folder }
  } finally {
    await store.close()
  }
}

interface ChatParts {
  /** The agent; null if the row of the continued conversation holds it. */
  readonly agent: AnyAgent | null
  readonly name: string
  readonly model: string
  readonly definition: AgentFile
  readonly folder: string
  /** The runtime options of a module. An agent in code hands messages to nobody else. */
  readonly options?: RuntimeOptions
}

class ChatLoop {
  private readonly call: Call
  private readonly parts: ChatParts
  private readonly runtime: Runtime
  private readonly knownAgents: ScopedStore['knownAgents']
  private readonly trees: Set<Id> = new Set()
  private readonly said: string[] = []
  private conversationId: Id | undefined

  constructor(call: Call, parts: ChatParts) {
    this.call = call
    this.parts = parts
    const { store, knownAgents } = scopedStore(storeOf(call, parts.options?.store), this.trees)
    this.knownAgents = knownAgents
    const options = parts.options ?? {
      files: diskFiles({ workspace: parts.folder }),
      extensions: [mentions(knownNames(parts.definition, call.env))],
      agents: parts.agent === null ? [] : [parts.agent],
    }
    this.runtime = createRuntime({ ...options, store })
  }

  async hold(): Promise<number> {
    try {
      this.conversationId = await this.continued()
      const code = InlineAsk.isPossible(this.call.env) ? await this.withPerson() : await this.withInput()
      if (this.conversationId !== undefined) note(`Continue with: ${this.continueCommand(this.conversationId)}`)
      return code
    } finally {
      await this.runtime.close()
    }
  }

  private async withPerson(): Promise<number> {
    const { name, model, options } = this.parts
    const mention = options === undefined ? '@name hands a message to a subagent. ' : ''
    note(`${oneLine(name)}, ${oneLine(model)}. ${mention}/help lists more; Ctrl-D leaves.`)
    if (this.conversationId !== undefined) await showLastRounds(this.runtime, this.conversationId)
    if ((await this.finishOpenRuns()) === EXIT.terminated) return EXIT.terminated
    for (;;) {
      const message = await promptForMessage(PROMPT, this.said)
      if (message === null || isExit(message)) return EXIT.completed
      if (message.trim() === '') continue
      this.said.push(message)
      if (await this.hasReplied(message)) continue
      const code = await this.turn(message)
      if (code === EXIT.terminated) return code
    }
  }

  /**
   * Reads messages from stdin, one a line, when nobody sits at a terminal. A request that needs a person ends the chat.
   */
  private async withInput(): Promise<number> {
    const reader = createInterface({ input: process.stdin, terminal: false })
    const lines = reader[Symbol.asyncIterator]()
    try {
      let last = await this.finishOpenRuns()
      while (!ENDS_CHAT.includes(last)) {
        const { value: line, done } = await lines.next()
        if (done === true || isExit(line)) return last
        if (line.trim() === '' || (await this.hasReplied(line))) continue
        last = await this.turn(line)
      }
      const unsent = await linesLeft(lines)
      if (unsent.length > 0) note(`Not sent: ${unsent.map((line) => JSON.stringify(cut(line, LONGEST))).join(', ')}.`)
      return last
    } finally {
      reader.close()
    }
  }

  /** Continues what an earlier process left open in this conversation: the next message would wait for it. */
  private async finishOpenRuns(): Promise<number> {
    const { runtime, conversationId } = this
    if (conversationId === undefined) return EXIT.completed
    const open = (await openTopRuns(runtime.store, this.trees)).filter((turn) => turn.conversationId === conversationId)
    if (open.length === 0) return EXIT.completed
    await runtime.resume()
    let last: number = EXIT.completed
    for (const { id } of open.sort((a, b) => a.ordinal - b.ordinal)) {
      last = await this.follow(await runtime.attach(id))
      if (ENDS_CHAT.includes(last)) break
    }
    return last
  }

  /** Handles a message that needs no model; tells whether it did. */
  private async hasReplied(message: string): Promise<boolean> {
    const isCoded = this.parts.options !== undefined
    if (isCoded && message.startsWith('@')) return false
    const reply = await localReply(message, () => knownNames(this.parts.definition, this.call.env).names())
    if (reply !== undefined) note(reply)
    return reply !== undefined
  }

  private async turn(message: string): Promise<number> {
    const { runtime, conversationId, parts } = this
    const kept = parts.agent === null ? conversationId : undefined
    const run =
      kept === undefined
        ? runtime.run(parts.agent as AnyAgent, message as never, conversationId === undefined ? {} : { conversationId })
        : await sendMessage(runtime, kept, message)
    this.trees.add((await runtime.store.rootOf(run.conversationId)) ?? run.conversationId)
    return this.follow(run)
  }

  private async follow(run: Run): Promise<number> {
    const { runtime, call, knownAgents } = this
    const isLive = InlineAsk.isPossible(call.env)
    const view = isLive
      ? new ChatView(runtime, call.env)
      : viewFor(runtime, { json: false, env: call.env, hint: '', isBeside: true })
    const worker = new Worker({
      desk: runtime,
      view,
      knownAgents,
      lastSeqs: new Map(),
      askers: respondersFor(call, runtime, view),
      ended: (one) => reportFailure(runtime, one, () => 'your next message.'),
      goOn: () => this.continueCommand(run.conversationId),
    })
    await worker.follow([run])
    const code = worker.end()
    worker.close()
    // Only a recorded run can be continued.
    if ((await runtime.store.rootOf(run.id)) !== undefined) this.conversationId = run.conversationId
    if (isLive) process.stdout.write('\n')
    else await writeExactly(await answerOfRun(runtime, run.id))
    return code
  }

  /** The conversation named by `--continue`. */
  private async continued(): Promise<Id | undefined> {
    const ending = textOption(this.call, 'continue')
    if (ending === undefined) return undefined
    const { store } = this.runtime
    const row = await findConversation(store, ending)
    const { name } = this.parts
    if (row.type !== 'user') throw new CliError(`The conversation of ${oneLine(ending)} is a subagent's.`, EXIT.usage)
    if (row.agent.name !== name) {
      const other = oneLine(row.agent.name)
      throw new CliError(`That conversation is with "${other}", not "${oneLine(name)}": name its file.`, EXIT.usage)
    }
    this.trees.add(row.rootId)
    return row.id
  }

  private continueCommand(conversationId: Id): string {
    const { call } = this
    const named = textOption(call, 'module') ?? call.words[0]
    const agent = textOption(call, 'agent')
    const words = [...(named === undefined ? [] : [named]), ...(agent === undefined ? [] : ['--agent', agent])]
    const file = words.map((word) => ` ${oneLine(shellWord(word))}`).join('')
    return legate(`chat${file} --continue ${shownId(conversationId)}`)
  }
}

/** Lists the messages that have arrived and that nobody reads. A writer that keeps its pipe open is not waited for. */
async function linesLeft(lines: AsyncIterator<string>): Promise<string[]> {
  const left: string[] = []
  const none = sleep(ARRIVED_MS, { done: true as const, value: undefined })
  for (;;) {
    const { value: line, done } = await Promise.race([lines.next(), none])
    if (done === true || isExit(line)) return left
    if (line.trim() !== '') left.push(line)
  }
}

/** Lists the definitions a message can be handed to; read anew each time. */
function knownNames({ subRecipes }: AgentFile, env: NodeJS.ProcessEnv): KnownNames {
  const found = async () => (await discover({ env })).definitions.filter(({ isHidden }) => !isHidden)
  return {
    names: async () => new Set([...subRecipes, ...(await found())].map(({ name }) => name)),
    parametersOf: async (wanted) => {
      const named = (await found()).find(({ name, shadowedBy }) => name === wanted && shadowedBy === null)
      const { parameters = [] } = named === undefined ? {} : await readDefinition(named.file)
      return parameters.map(({ key }) => key)
    },
  }
}
