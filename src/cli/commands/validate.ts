import path from 'node:path'
import { type Notice, validateDefinition } from '../../recipe/index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { noticeLine } from '../notice-lines.ts'
import { jsonLine, write } from '../terminal/output.ts'
import { type Paint, painter } from '../terminal/paint.ts'

/** Every file is looked at, also after one that is wrong; the code tells programs whether any was. */
export async function validate(call: Call): Promise<number> {
  const paint = painter(process.stdout, call.env)
  let isWrong = false
  for (const file of call.words) {
    const { agent, notices } = await validateDefinition(file, { mode: isSet(call, 'lenient') ? 'lenient' : 'strict' })
    isWrong ||= agent === null
    if (isSet(call, 'json')) {
      await write(
        jsonLine({
          file: path.resolve(file),
          ok: agent !== null,
          name: agent?.name ?? null,
          dialect: agent?.dialect ?? null,
          notices,
        }),
      )
    } else
      await write(
        linesOf(file, {
          isRight: agent !== null,
          what: agent === null ? '' : `${agent.dialect}, ${agent.name}`,
          notices,
          paint,
        }),
      )
  }
  return isWrong ? EXIT.other : EXIT.completed
}

interface Shown {
  readonly isRight: boolean
  readonly what: string
  readonly notices: readonly Notice[]
  readonly paint: Paint
}

function linesOf(file: string, { isRight, what, notices, paint }: Shown): string {
  const lines = notices.map((notice) => noticeLine(notice, shownPlace(notice.file, file), paint))
  const verdict = isRight ? `${file}: ${paint('green', 'ok')} (${what})\n` : ''
  return lines.join('') + verdict
}

/** As it was typed, where it is that file. */
function shownPlace(place: string, typed: string): string {
  return path.resolve(typed) === place ? typed : path.relative(process.cwd(), place) || place
}
