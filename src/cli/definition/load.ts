import { type AgentFile, loadDefinition, missingAgents, readDefinition } from '../../recipe/index.ts'
import type { Call } from '../command.ts'
import { askLine, canAsk } from '../terminal/ask-line.ts'
import { definitionFile } from './definition-file.ts'
import { checkKeys, missingError, missingOf, parametersOf, questionOf } from './parameters.ts'
import { fromHere, refused } from './refused.ts'

/**
 * The definition that the first word of a command names, with a value for every parameter: from `--param`, its default, or
 * the person at the terminal. Throws a CliError that says what is wrong with the file, where, and what to do.
 */
export async function loadFor(call: Call): Promise<AgentFile> {
  const given = parametersOf(call)
  const file = await definitionFile(call.words[0] ?? '', call.env)
  try {
    const { parameters } = await readDefinition(file)
    checkKeys(given, parameters)
    const missing = missingOf(given, parameters)
    if (missing.length > 0 && !canAsk()) throw missingError(fromHere(file), missing)
    const values = new Map(given)
    for (const parameter of missing) values.set(parameter.key, await askLine(questionOf(parameter)))
    const definition = await loadDefinition(file, { parameters: Object.fromEntries(values) })
    return { ...definition, notices: [...definition.notices, ...(await missingAgents(definition, { env: call.env }))] }
  } catch (error) {
    throw refused(error)
  }
}
