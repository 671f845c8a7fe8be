import path from 'node:path'
import {
  renderedLeaf,
  type TextLeaf,
  type TextTree,
  textsOf,
  valueAt,
  withLeaves,
} from '../../core/base/text-tree/tree.ts'
import { isExpression, render, syntaxTrouble, type TemplateTrouble } from '../template/engine.ts'
import { type HeldTemplate, holdSources, holdValues, Releaser } from '../template/hold.ts'
import { checkMarks, readIncludes } from '../template/includes.ts'
import { type ProtectedTemplate, protect } from '../template/protect.ts'
import { segmentsOf, tagName } from '../template/tags.ts'
import { definedNames, undeclaredVariables } from '../template/variables.ts'
import { type NoticeParts, type NoticeReport, refuseFile } from '../text/notice.ts'
import { type ReadOptions, readText } from '../text/read-text.ts'
import { type ParsedYaml, parseYaml } from '../text/yaml.ts'
import { RECIPE_DIR, type TemplateNames } from './parameters.ts'
import { recipeTree } from './read-recipe.ts'

export type Values = Readonly<Record<string, string>>

/** A recipe file that was read but not rendered. */
export interface RecipeSource {
  readonly file: string
  /** The files that its templates include. */
  readonly includes: readonly string[]
  /** The tree with its templates. */
  readonly tree: TextTree
  readonly uses: TemplateNames
  /** Whether tags surround keys, so that values decide which keys exist. */
  readonly isStructural: boolean
  /** Renders the tree with these values. Values are data: they change no key and no list. */
  render(values: Values): Promise<TextTree>
}

/**
 * Reads a recipe. Templates are rendered inside each text of the parsed file. Only if tags surround keys is the whole
 * file rendered first; values are then held back until it is parsed.
 */
export async function openRecipe(
  file: string,
  report: NoticeReport,
  reading: Pick<ReadOptions, 'inside' | 'isKept'> = {},
): Promise<RecipeSource> {
  return readText(file, reading).then((text) => readSource(text, { file, isKept: reading.isKept }, report))
}

/** The place of a text, and the files it may not include. */
interface SourcePlace {
  readonly file: string
  readonly isKept?: ReadOptions['isKept']
}

export async function readSource(
  text: string,
  { file, isKept }: SourcePlace,
  report: NoticeReport,
): Promise<RecipeSource> {
  const parsed = await parseYaml(text)
  if (!/\{[{%#]/.test(text)) return withoutTemplates(parsed, file)
  checkMarks(text, file)
  const templates = await readIncludes(text, file, isKept)
  const draft: ParsedFile = { text, file, parsed, templates, report }
  const inFields = parsed.ok ? leafTemplates(parsed.tree) : undefined
  const isSound = inFields !== undefined && areSound(inFields)
  if (isSound && hasAllTags(text, inFields)) return fieldSource(draft, inFields)
  const whole = protect(text, { isExpression })
  const trouble = syntaxTrouble(whole.template)
  if (trouble === undefined) return textSource(draft, whole)
  if (inFields !== undefined && isSound) return fieldSource(draft, inFields)
  if (!parsed.ok && !/\{%/.test(text)) throw refuseFile(parsed.finding, file)
  throw templateError(trouble, { file, line: trouble.line })
}

interface ParsedFile {
  readonly text: string
  readonly file: string
  readonly parsed: ParsedYaml
  readonly templates: ReadonlyMap<string, string>
  readonly report: NoticeReport
}

function filesOf({ file, templates }: ParsedFile): string[] {
  return [...templates.keys()].map((name) => path.join(path.dirname(file), name))
}

interface LeafTemplate extends ProtectedTemplate {
  readonly leaf: TextLeaf
  /** The error of the engine in this template, if any. */
  readonly trouble: TemplateTrouble | undefined
}

function withoutTemplates(parsed: ParsedYaml, file: string): RecipeSource {
  if (!parsed.ok) throw refuseFile(parsed.finding, file)
  const { tree } = parsed
  return {
    file,
    includes: [],
    tree,
    isStructural: false,
    uses: { used: new Map(), mentioned: new Set() },
    render: async () => tree,
  }
}

function leafTemplates(tree: TextTree): LeafTemplate[] {
  return [...new Set(textsOf(tree))]
    .filter(({ text }) => /\{[{%#]/.test(text))
    .map((leaf) => {
      const own = protect(dedented(leaf), { isExpression })
      return { leaf, ...own, trouble: syntaxTrouble(own.template) }
    })
}

/**
 * Removes the indentation of the block, which is gone from the parsed text too: `indent(4)` in a block of 4 adds
 * nothing.
 */
function dedented({ text, indent }: TextLeaf): string {
  if (indent === 0 || !text.includes('indent')) return text
  return text.replace(/(\{\{[^{}]*\|\s*indent\(\s*)(\d{1,3})/g, (found, before: string, width: string) => {
    return Number(width) < indent ? found : `${before}${Number(width) - indent}`
  })
}

/** Tells whether each template stands alone: it closes what it opens and uses no name that another text defines. */
function areSound(templates: readonly LeafTemplate[]): boolean {
  if (templates.some(({ trouble }) => trouble !== undefined)) return false
  const defined = templates.map(({ template }) => (template.includes('{%') ? definedNames(template) : NO_NAMES))
  const counts = new Map<string, number>()
  for (const name of defined.flatMap((names) => [...names])) counts.set(name, (counts.get(name) ?? 0) + 1)
  if (counts.size === 0) return true
  return templates.every(({ template }, at) =>
    [...undeclaredVariables(template).keys()].every((used) => {
      const name = used.split('.', 1)[0] ?? used
      const isOwn = defined[at]?.has(name) === true
      return (counts.get(name) ?? 0) === (isOwn ? 1 : 0)
    }),
  )
}

const NO_NAMES: ReadonlySet<string> = new Set()

/** Tells whether all tags are inside texts: none in comments, none around keys. */
function hasAllTags(text: string, templates: readonly LeafTemplate[]): boolean {
  return tagCount(text) === templates.reduce((sum, { leaf }) => sum + tagCount(leaf.text), 0)
}

function tagCount(text: string): number {
  return segmentsOf(text).filter((segment) => {
    return segment.kind === 'raw' || (segment.kind === 'tag' && tagName(segment) !== '')
  }).length
}

function fieldSource(draft: ParsedFile, leaves: readonly LeafTemplate[]): RecipeSource {
  const { file, parsed, report, text, templates } = draft
  if (!parsed.ok) throw refuseFile(parsed.finding, file)
  const broken = leaves.find(({ trouble }) => trouble !== undefined)
  if (broken?.trouble !== undefined) throw templateError(broken.trouble, placeIn(broken.leaf, broken.trouble, file))
  for (const { literals, leaf } of leaves) reportLiterals(literals, leaf.textLine - 1, report)
  const included = [...templates.values()].map((template) => protect(template, { isExpression }).template)
  const own = leaves.map(({ template, leaf }) => ({ template, firstLine: leaf.textLine }))
  const uses = usesOf([...own, ...included.map((template) => ({ template, firstLine: null }))], text)
  return {
    file,
    includes: filesOf(draft),
    tree: withLeaves(parsed.tree, new Map(leaves.map(({ leaf }) => [leaf, { ...leaf, isTemplated: true }]))),
    isStructural: false,
    uses,
    render: (values) => renderFields({ ...draft, tree: parsed.tree }, leaves, values),
  }
}

async function renderFields(
  { file, tree, templates, report }: ParsedFile & { readonly tree: TextTree },
  leaves: readonly LeafTemplate[],
  values: Values,
): Promise<TextTree> {
  const parameters = valueAt(recipeTree(tree), 'parameters')
  const defined = new Set(parameters === undefined ? [] : textsOf(parameters))
  const rendered = leaves.filter(({ leaf }) => !defined.has(leaf))
  const known = report.isLenient ? new Set(Object.keys(values)) : undefined
  const ready = (text: string): string => {
    if (known === undefined) return protect(text, { isExpression }).template
    return protect(text, { isExpression, known: new Set([...known, ...definedNames(text), ...localNames(text)]) })
      .template
  }
  const answer = await render({
    texts: rendered.map(({ leaf, template }) => (known === undefined ? template : ready(dedented(leaf)))),
    templates: Object.fromEntries([...templates].map(([name, text]) => [name, ready(text)])),
    values: wellFormed(values),
    undefinedBehavior: known === undefined ? 'strict' : 'chainable',
  })
  if (!answer.ok) {
    const { trouble } = answer
    const leaf = rendered[trouble.index]?.leaf
    throw templateError(trouble, placeOf(trouble, leaf, file))
  }
  const replaced = rendered.map(({ leaf }, at): [TextLeaf, TextLeaf] => [
    leaf,
    renderedLeaf(leaf, answer.texts[at] ?? ''),
  ])
  return withLeaves(tree, new Map(replaced))
}

/** Lists names that loops, macros and the like define inside a text. */
function localNames(text: string): string[] {
  const names = segmentsOf(text)
    .filter(({ kind }) => kind === 'tag')
    .flatMap(({ inner }) => inner.match(/[\p{L}_][\p{L}\p{N}_]*/gu) ?? [])
  return /\{%[-+]?\s*(?:for|macro|with|call|from|import)\b/.test(text) ? names : []
}

async function textSource(draft: ParsedFile, whole: ProtectedTemplate): Promise<RecipeSource> {
  const { file, report, text } = draft
  reportLiterals(whole.literals, 0, report)
  const included = [...draft.templates].map(([name, template]) => {
    return [name, protect(template, { isExpression }).template] as const
  })
  const held = (hold: (template: string) => HeldTemplate) => ({
    main: heldOf(hold(whole.template), file),
    templates: included.map(([name, template]) => [name, heldOf(hold(template), file)] as const),
  })
  const valued = held(holdValues)
  const undefinedBehavior = report.isLenient ? 'chainable' : 'strict'
  const own = { template: whole.template, firstLine: 1 }
  return {
    file,
    includes: filesOf(draft),
    tree: await firstLook(held, file),
    isStructural: true,
    uses: usesOf([own, ...included.map(([, template]) => ({ template, firstLine: null }))], text),
    render: (values) => renderWhole({ ...valued, values, undefinedBehavior }, file),
  }
}

/** Renders the file without any values, to read its parameters. Expressions stay as written. */
function firstLook(held: (hold: (template: string) => HeldTemplate) => Texts, file: string): Promise<TextTree> {
  const sources: string[] = []
  const mark = '0'
  const texts = held((template) => holdSources(template, mark, sources))
  const values = { [RECIPE_DIR]: path.dirname(file) }
  return renderWhole({ ...texts, values, undefinedBehavior: 'chainable' }, file, new Releaser(sources, mark))
}

interface Texts {
  readonly main: string
  readonly templates: readonly (readonly [string, string])[]
}

async function renderWhole(
  job: Texts & { readonly values: Values; readonly undefinedBehavior: 'strict' | 'chainable' },
  file: string,
  known?: Releaser,
): Promise<TextTree> {
  const { main, templates, values, undefinedBehavior } = job
  const answer = await render({
    texts: [main],
    templates: Object.fromEntries(templates),
    values: wellFormed(values),
    undefinedBehavior,
  })
  if (!answer.ok) throw templateError(answer.trouble, placeOf(answer.trouble, undefined, file))
  const parsed = await parseYaml(answer.texts[0] ?? '')
  if (!parsed.ok) throw afterRendering(parsed.finding, file)
  const releaser = known ?? answer.releaser
  checkKeys(parsed.tree, (key) => releaser.has(key), file)
  const leaves = [...new Set(textsOf(parsed.tree))].filter(({ text }) => releaser.has(text))
  const released = leaves.map((leaf): [TextLeaf, TextLeaf] => {
    const text = releaser.release(leaf.text)
    if (text === undefined) throw templateError(TOO_MUCH, { file })
    return [leaf, renderedLeaf(leaf, text)]
  })
  return withLeaves(parsed.tree, new Map(released))
}

const TOO_MUCH: TemplateTrouble = { message: 'too much text', index: 0, template: null, line: null }

/** Drops the line of a finding: it counts rendered text, which nobody has seen. */
function afterRendering({ line, ...finding }: NoticeParts, file: string): Error {
  const where = line == null ? '' : `, line ${line} of the rendered text`
  return refuseFile({ ...finding, message: `after rendering${where}: ${finding.message}` }, file)
}

function heldOf(holding: HeldTemplate, file: string): string {
  if (holding.ok) return holding.template
  throw refuseFile({ code: 'template', message: holding.message, line: holding.line }, file)
}

/** Refuses values as keys: a value may become a text in the file, but not the name of a field. */
function checkKeys(tree: TextTree, isHeld: (key: string) => boolean, file: string): void {
  if (tree.kind === 'leaf') return
  if (tree.kind === 'list') {
    for (const item of tree.items) checkKeys(item, isHeld, file)
    return
  }
  for (const [key, { value }] of tree.entries) {
    if (isHeld(key)) {
      const hint = 'Write the key itself; a parameter can be a value only.'
      throw refuseFile({ code: 'template', message: 'a parameter is used as the name of a key', hint }, file)
    }
    checkKeys(value, isHeld, file)
  }
}

/** Lists names that the templates use and none of them defines. */
function usesOf(
  templates: readonly { readonly template: string; readonly firstLine: number | null }[],
  text: string,
): TemplateNames {
  const defined = new Set(templates.flatMap(({ template }) => [...definedNames(template)]))
  const used = new Map<string, number | null>()
  for (const { template, firstLine } of templates) {
    for (const [name, line] of undeclaredVariables(template)) {
      const isOpen = !used.has(name) && !defined.has(name.split('.', 1)[0] ?? name)
      if (isOpen) used.set(name, firstLine === null ? null : firstLine + line - 1)
    }
  }
  return { used, mentioned: new Set(undeclaredVariables(text).keys()) }
}

function reportLiterals(literals: ProtectedTemplate['literals'], before: number, report: NoticeReport): void {
  for (const { text, line } of literals) {
    const message = `${JSON.stringify(text)} is no template tag and is kept as text`
    report.note({ code: 'template', message, line: before + line })
  }
}

function placeOf(
  trouble: TemplateTrouble,
  leaf: TextLeaf | undefined,
  file: string,
): Pick<NoticeParts, 'line'> & { file: string } {
  if (trouble.template !== null) return { file: path.join(path.dirname(file), trouble.template), line: trouble.line }
  return leaf === undefined ? { file, line: trouble.line } : placeIn(leaf, trouble, file)
}

function placeIn(leaf: TextLeaf, { line }: TemplateTrouble, file: string): { file: string; line: number } {
  return { file, line: leaf.textLine + (line ?? 1) - 1 }
}

function templateError(trouble: TemplateTrouble, { file, line = null }: { file: string; line?: number | null }): Error {
  const { message } = trouble
  const hint = HINTS.find(([pattern]) => pattern.test(message))?.[1]
  const finding: NoticeParts = { code: 'template', message: `Failed to render the recipe: ${message}`, line }
  return refuseFile(hint === undefined ? finding : { ...finding, hint }, file)
}

const HINTS: readonly (readonly [RegExp, string])[] = [
  [/^undefined value/, 'Define the name under "parameters", or write {{ name | default("") }}.'],
  [/^template not found/, 'Name a file in the folder of the recipe, in quotes.'],
  [
    /fuel|did not end|too much text|recursion|could not render include|engine failed/,
    'Its loops or macros go on too long: make them smaller.',
  ],
  [/^syntax error/, 'To keep braces as text, put {% raw %} and {% endraw %} around them.'],
  [
    /^unknown method/,
    'Values have no methods in these templates: write a filter behind a |, such as {{ text | upper }}.',
  ],
  [/^unknown (?:filter|test|function)/, 'Use the words of Jinja templates: their filters, tests and functions.'],
]

/** Repairs values for the engine, which accepts well-formed text only. */
function wellFormed(values: Values): Values {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, value.toWellFormed()]))
}
