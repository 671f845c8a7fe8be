import { InputError } from '../base/error.ts'
import { readTextFile, TextFileTrouble } from '../files/text-file.ts'
import { fileError } from '../prompt/file/file-error.ts'
import { loadPromptText, MOST_PROMPT_BYTES, type PromptLoadOptions } from '../prompt/file/load-text.ts'
import type { Prompt } from '../prompt/prompt.ts'

export type { AgentRequest, RequestRuntime, RequestStartOptions } from '../agent/definition/agent-request.ts'
export type { PromptAlias, PromptAliases, PromptAliasFunction } from '../prompt/file/alias.ts'
export { loadPromptText, type PromptLoadOptions, type TextLoadOptions } from '../prompt/file/load-text.ts'
export { Prompt, prompt, type SlotKey, type SlotOptions } from '../prompt/prompt.ts'
export { EmptyPromptError } from '../prompt/render/blocks.ts'
export type { PromptWarning, RenderOptions, Roles, TitleKey } from '../prompt/render/options.ts'
export type { MessagesOptions, PromptMessage, TextOptions } from '../prompt/render/to-messages.ts'
export type {
  MediaBlock,
  PromptRequest,
  RequestMessage,
  RequestOptions,
  RequestRenderOptions,
  RequestSettings,
} from '../prompt/render/to-request.ts'
export { type Described, field, type OutputOf, type OutputShape, type Shape } from '../prompt/shape/shape-schema.ts'
export type { MessagePart } from '../prompt/slots/message.ts'
export type { Mappings } from '../prompt/slots/placeholder.ts'
export { type Layers, SLOTS, type Slot } from '../prompt/slots/slot.ts'

/** Reads a prompt file, whatever its path looks like: `.json`, `.jsonc` and `.json5` are JSON, all others YAML. */
export async function loadPromptFile<P extends Prompt = Prompt>(
  path: string,
  options: PromptLoadOptions<P> & { readonly format?: 'yaml' | 'json' } = {},
): Promise<P> {
  if (typeof path !== 'string' || path === '') {
    throw new InputError('invalid_input', 'loadPromptFile(): give it the path of a file.')
  }
  const format = options.format ?? (/\.json[c5]?$/i.test(path) ? 'json' : 'yaml')
  return loadPromptText<P>(await readPromptFile(path), { ...options, format, file: path })
}

/** Reads the text of a prompt file. Throws a RecipeError that names the file if it is not a readable text. */
async function readPromptFile(file: string): Promise<string> {
  try {
    return await readTextFile(file, { mostBytes: MOST_PROMPT_BYTES })
  } catch (error) {
    if (!(error instanceof TextFileTrouble)) throw error
    const { message: problem, hint, cause } = error
    throw fileError({ problem, file, hint: [hint, TEXT].filter(Boolean).join(' '), cause })
  }
}

const TEXT = 'For text instead of a path use loadPromptText.'
