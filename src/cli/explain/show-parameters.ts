import { type RecipeParameter, readDefinition } from '../../recipe/index.ts'
import { type Call, isSet } from '../command.ts'
import { definitionFile } from '../definition/definition-file.ts'
import { missingOf, parametersOf } from '../definition/parameters.ts'
import { refused } from '../definition/refused.ts'
import { canAsk } from '../terminal/ask-line.ts'
import { oneLine } from '../terminal/clean.ts'
import { write } from '../terminal/output.ts'

/** Where a value is missing and nobody can be asked, what the file is and takes is shown before it is refused. */
export async function showParameters(call: Call): Promise<void> {
  if (canAsk() || isSet(call, 'json')) return
  const file = await definitionFile(call.words[0] ?? '', call.env)
  const definition = await readDefinition(file).catch((error: unknown) => {
    throw refused(error)
  })
  const { name, title, description, parameters } = definition
  if (missingOf(parametersOf(call), parameters).length === 0) return
  await write(
    `${oneLine(title ?? name)}\n  ${oneLine(description)}\n\nParameters\n${parameters.map(lineOf).join('')}\n`,
  )
}

function lineOf({ key, inputType, requirement, description, options, default: fallback }: RecipeParameter): string {
  const choice = inputType === 'select' ? ` of ${options.map(oneLine).join(' | ')}` : ''
  const preset = fallback === null ? '' : `, else ${JSON.stringify(oneLine(fallback))}`
  return `  ${oneLine(key).padEnd(16)} ${inputType}${choice}, ${requirement}${preset}: ${oneLine(description)}\n`
}
