import type { ConversationHandle, Runtime } from '../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command.ts'
import { findRun, shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { lookedAt } from '../recent-runs.ts'
import { plural } from '../terminal/amounts.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'
import { wrap } from '../terminal/wrap.ts'

const TURNS = 20
const MOST_TURNS = 1_000
const INDENT = '  '

/** What was said in a conversation, round by round, the latest ones. */
export function transcript(call: Call): Promise<number> {
  const limitTurns = turnsOf(call)
  return withRuntime(call, 'read', async (runtime) => {
    const { conversationId } = lookedAt(runtime, call)
    const talk = await runtime.conversation(conversationId)
    const before = textOption(call, 'before')
    const beforeTurnId = before === undefined ? undefined : turnBefore(runtime, conversationId, before)
    const page = await talk.transcriptPage({ limitTurns, ...(beforeTurnId === undefined ? {} : { beforeTurnId }) })
    const paint = painter(process.stdout, call.env)
    for (const line of page.transcript) await write(isSet(call, 'json') ? jsonLine(line) : said(line, paint, talk))
    if (!isSet(call, 'json')) await write(await footer(page, talk))
    return EXIT.completed
  })
}

type Page = Awaited<ReturnType<ConversationHandle['transcriptPage']>>
type Line = Page['transcript'][number]

function said({ role, text, state }: Line, paint: Paint, { row }: ConversationHandle): string {
  const who = role === 'user' ? paint('cyan', 'user') : paint('bold', oneLine(row?.agent.name ?? '?'))
  const how = state === 'finished' ? '' : paint('dim', ` (${state})`)
  const lines = cleanText(text.trimEnd())
    .split('\n')
    .flatMap((line) => wrap(line, outputColumns() - INDENT.length - 1).lines)
  return `${who}${how}\n${lines.map((line) => `${INDENT}${line}`.trimEnd()).join('\n')}\n\n`
}

/** Where it goes on: the rounds before these, if there are any. */
async function footer({ turnIds, beforeTurnId }: Page, talk: ConversationHandle): Promise<string> {
  if (beforeTurnId === null) return 'Nothing was said.\n'
  const earlier = await talk.transcriptPage({ beforeTurnId, limitTurns: 1 })
  if (earlier.turnIds.length === 0) return ''
  return `${plural(turnIds.length, 'round')}. Those before: legate transcript ${shortId(talk.id)} --before ${shortId(beforeTurnId)}\n`
}

function turnBefore({ store }: Runtime, conversationId: string, ending: string): string {
  const turn = findRun(store, ending)
  if (turn.conversationId === conversationId) return turn.id
  throw new CliError(`The run ${shortId(turn.id)} is of another conversation.`, EXIT.usage)
}

function turnsOf(call: Call): number {
  const text = textOption(call, 'turns')
  if (text === undefined) return TURNS
  const turns = Number(text)
  if (/^\d+$/.test(text) && turns >= 1 && turns <= MOST_TURNS) return turns
  throw new CliError(`--turns is a whole number from 1 to ${MOST_TURNS}, not "${oneLine(text)}".`, EXIT.usage)
}
