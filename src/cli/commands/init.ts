import { writeFileSync } from 'node:fs'
import { type Call, CliError, EXIT } from '../command/command.ts'
import { shellWord } from '../command/next-command.ts'
import { oneLine } from '../terminal/clean.ts'
import { write } from '../terminal/output.ts'

const FILE = 'recipe.yaml'

/** A recipe that runs as it is, with one example of each common field. */
const RECIPE = `# legate run FILE --param topic="HTTP/3"
# legate explain FILE shows what the model is told, without calling it.
version: "1.0.0"
title: Explain a topic
description: Explains one topic to a given reader, in a few sentences

parameters:
  - key: topic
    input_type: string
    requirement: required
    description: what is to be explained
  - key: reader
    input_type: select
    requirement: optional
    default: a beginner
    options: [a beginner, an expert]
    description: for whom

instructions: |
  You explain things clearly and briefly. Use plain words and no headings.

prompt: |
  Explain {{ topic }} to {{ reader }}, in at most five sentences.

# Model and limits. Without a model: --model, LEGATE_MODEL, or that of your config file.
# settings:
#   goose_provider: anthropic
#   goose_model: claude-sonnet-5
#   max_turns: 10

# Tools: none but subagent, with which it may delegate. Without this line it also has files and the shell.
extensions: []
# extensions:
#   - type: builtin
#     name: developer
#   - type: stdio
#     name: memory
#     cmd: npx
#     args: [-y, "@modelcontextprotocol/server-memory"]
`

/** Writes the recipe unless the file exists. */
export async function init(call: Call): Promise<number> {
  const [file = FILE] = call.words
  if (!/\.ya?ml$/i.test(file))
    throw new CliError(`"${oneLine(file)}" is not a name for a recipe: it must end in .yaml.`, EXIT.usage)
  try {
    writeFileSync(file, RECIPE.replaceAll('FILE', shellWord(file)), { flag: 'wx' })
  } catch (error) {
    throw new CliError(troubleOf(error, file), EXIT.usage, { namesHelp: false })
  }
  await write(`${oneLine(file)} was written. Try it: legate run ${oneLine(shellWord(file))} --param topic="HTTP/3"\n`)
  return EXIT.completed
}

function troubleOf(error: unknown, file: string): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EEXIST')
    return `${oneLine(file)} already exists and was not changed. Name another file: legate init FILE.`
  if (code === 'ENOENT') return `The folder of ${oneLine(file)} does not exist. Create it first.`
  return `Cannot write ${oneLine(file)}: ${oneLine(message)}`
}
