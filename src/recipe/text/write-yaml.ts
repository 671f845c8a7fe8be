import type { Json } from '../../base/json.ts'

/** YAML for people: texts of several lines are literal blocks, so that a template in them stays one; keys keep their order. */
export async function writeYaml(value: { readonly [key: string]: Json | undefined }): Promise<string> {
  const { Document, Scalar, visit } = await import('yaml')
  const document = new Document(withoutUndefined(value))
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && node.value.includes('\n')) node.type = Scalar.BLOCK_LITERAL
    },
  })
  return document.toString({ lineWidth: 0, blockQuote: 'literal', aliasDuplicateObjects: false } as object)
}

function withoutUndefined(value: { readonly [key: string]: Json | undefined }): Json {
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, Json] => entry[1] !== undefined))
}
