// Texts of the fake host.

export const NORWAY_NOTE = `---
title: Norway by rail
date: 2019-07-02
tags: [travel, train, norway]
---
# Norway by rail

Two weeks with Thomas and no car, from 15 to 29 June 2019. Lucie was nearly three and stayed with my parents for the first time, which was harder for me than for her.

## How we got there

Lyon to Hamburg by day, with one change in Mannheim. We had forty minutes there, and a man in the buffet explained to us for thirty of them why he no longer eats bread. The night in Hamburg was at the Pension Alsterblick, third floor without a lift, very clean, 84 euros with breakfast.

## Oslo

Three nights in a rented room in Grünerløkka with a landlady called Solveig, who left a note every morning with the weather and a commandment. The first one said: "Rain from eleven. Do not buy water, we have water."

We saw the ship museum on Bygdøy on the first afternoon. The opera house is a roof that you may walk on, and in the evening half the town does. Thomas lost his hat there: it rolled down the marble into the fjord, slowly, while a class of schoolchildren cheered.

| what | crowns |
|---|---:|
| coffee and a bun | 96 |
| fish soup | 110 |

## The Bergen line

The train leaves Oslo at 8.25 and needs six and a half hours. Sit on the left side going west; after [[Finse]] it does not matter any more.

${"It rained, and then it rained again. ".repeat(60)}
`;

export const PLAIN_ANSWER = `From Travel/2019 Norway by rail.md:

> Thomas lost his hat there: it rolled down the marble into the fjord, slowly, while a class of schoolchildren cheered.

That was at the **opera house in Oslo**, on the trip of June 2019.`;

export const CJK_ANSWER = `来自 旅行/云南之行.md：

> 住在翠湖边上的一家小旅馆，叫“听鸥楼”，每晚二百四十元。冬天有从西伯利亚飞来的红嘴鸥，湖边卖鸥粮，五块钱一包。

旅馆名叫**听鸥楼**，在翠湖边上。`;

export const LONG_ANSWER = `## What your notes say about the house

Three notes speak of it. The first is \`House/Energy/Heat pump.md\`, the second a list, the third a table.

1. Flow temperature 38 degrees at zero outside; slope 0.6.
2. Night setback off. We tried it for a month and it used more.
   - In January: more.
   - In February: more as well.
3. Hot water 48 degrees, once a week 60 degrees on Sunday at noon.

| year | consumption | price | remark |
|---|---:|---:|---|
| 2021 | 4,120 kWh | 812 € | before the heat pump, and with the old tumble dryer in the cellar |
| 2022 | 4,480 kWh | 960 € | |
| 2023 | 6,310 kWh | 1,402 € | first year with the heat pump |

To read the meter every night there is a small script:

\`\`\`python
import time

def read_meter(port: str = "/dev/ttyUSB0") -> float:
    """Reads the meter once; a_very_long_identifier_that_does_not_wrap_anywhere_at_all_in_this_line = True"""
    with open(port) as line:   # the optical head
        return float(line.readline().split("*")[0])

while True:
    print(read_meter())
    time.sleep(3600)
\`\`\`

See the [manual](https://example.org/manual) and <script>alert("never run")</script> the image ![of the boiler](https://example.org/boiler.png).

> Error E7 means that the filter in the return is blocked: shut both valves, unscrew the sieve, rinse it, done in ten minutes.

### A word that does not end

Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsvorsitzendenstellvertreterin and /a/path/that/goes/on/and/on/and/on/and/on/and/on/and/on/and/on/and/on/and/on/to/the/end.txt

- [x] filter rinsed
- [ ] service in September

${"The rest is a paragraph of some length, so that the page has to be scrolled and the end is not at once in sight. ".repeat(12)}`;
