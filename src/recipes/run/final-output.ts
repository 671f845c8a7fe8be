import type { Json } from '../../core/base/json.ts'
import { type CheckedSchema, describeIssues, type JsonSchema, readSchema } from '../../core/base/schema/schema.ts'
import { rowTool } from '../../core/delegation/background/row-tool.ts'
import { errorEnd, type ToolEnd } from '../../core/tool/result.ts'
import type { Tool } from '../../core/tool/tool.ts'

export const FINAL_OUTPUT = 'recipe__final_output'

/** Makes the tool whose arguments are the final output. A wrong output is reported to the model, which tries again. */
export function finalOutputTool(response: JsonSchema): Tool {
  const schema = readSchema(response, 'response.json_schema')
  const isWrapped = !isObjectSchema(response)
  return rowTool({
    name: FINAL_OUTPUT,
    description: 'Takes your final output. Call it exactly once, when the work is done: nothing is done after it.',
    input: shownSchema(response, isWrapped),
    alsoTakes: 'all',
    startsChild: false,
    needsGrant: false,
    operation: (_, input) => collect(schema, isWrapped ? input[WRAPPED] : input),
  })
}

/** Tells the model about the tool. */
export function finalOutputWords(response: JsonSchema): string {
  return `# Final output

Your answer is not a text. When you are done you MUST call the tool \`${FINAL_OUTPUT}\` once; its arguments are the answer, and must fit this JSON schema:

\`\`\`json
${JSON.stringify(response, null, 2)}
\`\`\``
}

/** The key for a value that is not an object: tools accept only objects. */
const WRAPPED = 'output'

function isObjectSchema({ type, properties }: JsonSchema): boolean {
  return type === 'object' || (type === undefined && properties !== undefined)
}

function shownSchema(response: JsonSchema, isWrapped: boolean): JsonSchema & { readonly properties: object } {
  if (isWrapped) return { type: 'object', properties: { [WRAPPED]: response }, required: [WRAPPED] }
  return { properties: {}, ...response, type: 'object' }
}

async function collect(schema: CheckedSchema, value: unknown): Promise<ToolEnd> {
  const checked = await schema.validate(value ?? null)
  if (!checked.ok) return errorEnd(refusal(describeIssues(checked.issues), schema.jsonSchema))
  const output = { content: 'Final output successfully collected.', value: value as Json }
  return { state: 'finished', output, body: null }
}

function refusal(issues: string, schema: JsonSchema): string {
  const lines = issues.split('\n').map((line) => `- ${line}`)
  return `Validation failed:\n${lines.join('\n')}\n\nExpected format:\n${JSON.stringify(schema, null, 2)}\n\nCorrect it and call ${FINAL_OUTPUT} again.`
}

/** The task that checks an answer. */
export const CHECK = 'recipe__check'
/** The task that cleans up after a failed check. */
export const ON_FAILURE = 'recipe__on_failure'

/** Where checks run. */
export interface CheckPlace {
  readonly cwd: string
  /** A folder chosen by a model, which is therefore part of what is decided. */
  readonly folder: string | null
}
