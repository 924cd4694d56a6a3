#!/bin/sh
# --reasoning-budget: after so many tokens of reasoning the answer begins.
# $AK_CLI, $AK_TEST_DATA, $AK_TEST_SOURCE: as in test_cli.sh. The tiny model never ends reasoning by
# itself, and its answers are no language; templates of the command line have it reason.
. "${AK_TEST_SOURCE:?}/tests/apps/cli/checks.sh"
model=$data/model.gguf

messages='{% for m in messages %}{{ m.content }}{% endfor %}'
# begins reasoning in the prompt, whatever is asked for
always="$messages<think>"
# turns it off as Qwen3's template does
turned_off="$messages{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{{ '' }}{% else %}<think>{% endif %}"
# leaves it to the model
by_model="$messages{# <think> </think> #}"
reply="run -m $model -p once --temp 0 -n 24 --ignore-eos --json"

# member NAME: prints the value of a text member of the JSON on standard output.
member() {
    sed -n "s/.*\"$1\": \"\(\([^\"\\\\]\|\\\\.\)*\)\".*/\1/p" "$out"
}

# shellcheck disable=SC2086
{
    # ---- A budget ----
    exits 0 $reply --chat-template "$always"
    all=$(member reasoning)
    [ -n "$all" ] && [ -z "$(member text)" ]
    check "without a budget all is reasoning"
    exits 0 $reply --chat-template "$always" --reasoning-budget -1
    [ "$(member reasoning)" = "$all" ]
    check "-1 is no budget"
    exits 0 $reply --chat-template "$always" --reasoning-budget 24
    [ "$(member reasoning)" = "$all" ]
    check "a budget of the whole answer changes nothing"
    exits 0 $reply --chat-template "$always" -n 6
    begun=$(member reasoning)
    exits 0 $reply --chat-template "$always" --reasoning-budget 6
    [ -n "$begun" ] && [ "$(member reasoning)" = "$begun" ] && [ -n "$(member text)" ]
    check "the reasoning up to the budget is the same, and an answer follows"
    answer=$(member text)
    exits 0 $reply --chat-template "$always" --reasoning-budget 6 --spec-type none
    [ "$(member reasoning)" = "$begun" ] && [ "$(member text)" = "$answer" ]
    check "drafts change nothing"
    exits 0 run -m "$model" -p once --temp 0 -n 24 --ignore-eos --chat-template "$always" --reasoning-budget 6
    says "[reasoning]"
    says "[answer]"
    [ -s "$out" ]
    check "the answer alone is on standard output"
    exits 0 $reply --chat-template "$always" --reasoning-budget 6 -np 2 --temp 0.8 -s 3
    [ "$(grep -o '"reasoning"' "$out" | wc -l)" -eq 2 ]
    check "each of several answers has the budget"
    exits_with AKUNU_REASONING_BUDGET=6 0 $reply --chat-template "$always"
    [ "$(member reasoning)" = "$begun" ]
    check "in the environment"

    # ---- None: the template turns it off, or it is opened and closed at once ----
    for template in "$always" "$turned_off" "$by_model"; do
        exits 0 $reply --chat-template "$template" --reasoning-budget 0
        [ -z "$(member reasoning)" ] && [ -n "$(member text)" ]
        check "no reasoning: $template"
        prints '"n_generated": 24'
    done
    exits 0 $reply --chat-template "$turned_off" --reasoning-budget 0
    turned=$(member text)
    exits 0 $reply --chat-template "$by_model" --reasoning-budget 0
    [ "$(member text)" = "$turned" ]
    check "what is opened and closed at once is what a template writes"
    exits 0 $reply --chat-template "$turned_off" --kwargs '{"enable_thinking": false}'
    [ "$(member text)" = "$turned" ]
    check "and what the template's own variable gives"
    exits 0 $reply --chat-template "$turned_off" --kwargs '{"enable_thinking": true}' --reasoning-budget 0
    [ -z "$(member reasoning)" ]
    check "a variable that asks for reasoning does not win over the budget"

    # ---- gpt-oss: channels ----
    channels="$messages<|start|>assistant{# <|channel|><|message|> #}"
    exits 0 $reply --chat-template "$channels" --reasoning-budget 0
    [ -z "$(member reasoning)" ] && [ -n "$(member text)" ]
    check "the final channel at once"

    # ---- No effect ----
    exits 0 $reply --reasoning-budget 3
    says "--reasoning-budget 3 has no effect: answers by this chat template have no reasoning"
    exits 0 $reply --reasoning-budget 0
    says "--reasoning-budget 0 has no effect"
    exits 2 run --raw -m "$model" -p x --reasoning-budget 3
    says "--reasoning-budget has no effect on a text that is continued as it is"
    exits 2 run -m "$model" -p x --reasoning-budget -2
    says "--reasoning-budget -2"

    # ---- In a chat ----
    printf 'once\nupon\n' >"$work/lines"
    "$cli" run -cnv -m "$model" --temp 0 -n 16 --ignore-eos --chat-template "$always" --reasoning-budget 4 <"$work/lines" >"$out" 2>"$err"
    check "a chat"
    [ "$(grep -cF '[answer]' "$err")" -eq 2 ]
    check "each answer has the budget"
    [ -s "$out" ]
    check "and text after it"
    "$cli" run -cnv -m "$model" --temp 0 -n 4 --reasoning-budget 4 <"$work/lines" >"$out" 2>"$err"
    [ "$(grep -c 'has no effect' "$err")" -eq 1 ]
    check "no effect is said once"

    # ---- The conversation of a file ----
    printf '[{"role": "user", "content": "once"}]' >"$work/messages.json"
    reply="chat -m $model --messages $work/messages.json --temp 0 -n 24 --ignore-eos"
    exits 0 $reply --json --chat-template "$always" --reasoning-budget 6
    [ "$(member reasoning)" = "$begun" ] && [ "$(member content)" = "$answer" ]
    check "the same reasoning and answer as of run"
    exits 0 $reply --json --chat-template "$turned_off" --reasoning-budget 0
    [ -z "$(member reasoning)" ] && [ "$(member content)" = "$turned" ]
    check "none, and the same answer"
    exits 0 $reply --json --chat-template "$turned_off" --reasoning off
    [ "$(member content)" = "$turned" ]
    check "turned off by the template's variable"
    exits 0 $reply --json --chat-template "$by_model" --reasoning-budget 3
    exits 0 $reply --json --reasoning-budget 3
    says "--reasoning-budget 3 has no effect"
    exits 0 $reply --json --chat-template "$always" --reasoning-budget 6 --hide-reasoning
    prints '"reasoning": null'
    [ "$(member content)" = "$answer" ]
    check "hidden in JSON"
    exits 0 $reply --json --stream --chat-template "$always" --reasoning-budget 6 --hide-reasoning
    ! grep -q reasoning "$out"
    check "hidden in the lines"
    exits 0 $reply --chat-template "$always" --reasoning-budget 6 --hide-reasoning
    [ -s "$out" ] && ! grep -qF '[reasoning]' "$err"
    check "hidden in text"
}

finish test_reasoning
