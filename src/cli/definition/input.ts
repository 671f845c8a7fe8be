import { parseJson } from '../../base/json.ts'
import type { Json } from '../../index.ts'
import type { AgentFile } from '../../recipe/index.ts'
import { type Call, CliError, EXIT } from '../command.ts'
import { askLine, canAsk } from '../terminal/ask-line.ts'
import { oneLine } from '../terminal/clean.ts'
import { standardInput } from '../terminal/standard-input.ts'
import { fromHere } from './refused.ts'

/** A recipe may have said all of it in its instructions. */
const BEGIN = 'Begin.'

/** What the agent is asked: the words after the file, `-` for what comes in, else its prompt, else the person here. */
export async function inputFor(definition: AgentFile, call: Call): Promise<Json> {
  const [file = '', ...words] = call.words
  const text = words.join(' ') === '-' ? await standardInput() : words.join(' ')
  const said = text.trim() === '' ? definition.prompt : text
  if (definition.input !== null) return typedInput(definition, said)
  if (said !== null && said.trim() !== '') return said
  if (definition.dialect === 'recipe') return BEGIN
  if (canAsk()) return askLine(`What shall ${oneLine(definition.name)} do? `)
  const message = `${fromHere(definition.file)} has no prompt of its own: say what it shall do, legate run ${oneLine(file)} "TEXT".`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

function typedInput({ name, file }: AgentFile, said: string | null): Json {
  const parsed = parseJson(said ?? '')
  if (parsed.ok) return parsed.value
  const message = `"${oneLine(name)}" takes JSON that fits the input schema of ${fromHere(file)}: ${oneLine(parsed.error)}`
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}
