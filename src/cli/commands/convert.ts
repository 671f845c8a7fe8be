import { convert as converted, DIALECTS, readDefinition } from '../../recipe/index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../command.ts'
import { refused } from '../definition/refused.ts'
import { noticeLine, noticeStyle } from '../notice-lines.ts'
import { cleanText } from '../terminal/clean.ts'
import { note, write } from '../terminal/output.ts'
import { painter } from '../terminal/paint.ts'

/** The file goes to stdout, what is lost and where it belongs to stderr. */
export async function convert(call: Call): Promise<number> {
  const [file = ''] = call.words
  const dialect = dialectOf(textOption(call, 'to'))
  const options = { folder: process.cwd(), lossy: isSet(call, 'lossy') }
  const agent = await readDefinition(file, { mode: 'lenient' }).catch(refuse)
  const { text, path, notices } = await converted(agent, dialect, options).catch(refuse)
  await write(process.stdout.isTTY ? cleanText(text) : text)
  const paint = painter(process.stderr, call.env)
  for (const notice of notices) process.stderr.write(noticeLine(notice, file, noticeStyle(process.stderr, paint)))
  if (process.stdout.isTTY) note(paint('dim', `A file of this kind belongs to ${path}`))
  return EXIT.completed
}

function refuse(error: unknown): never {
  throw refused(error)
}

function dialectOf(name: string | undefined): string {
  if (name !== undefined && DIALECTS.includes(name)) return name
  const known = DIALECTS.join(', ')
  if (name === undefined) throw new CliError(`--to is missing: name one of ${known}.`, EXIT.usage)
  throw new CliError(`There is no dialect "${name}". There are ${known}.`, EXIT.usage)
}
