//! What the tests of the notes server share: a second vault, and a client of the server's process.
//! Invariant: the second vault is another person's; nothing in the search was fitted to its questions.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::Path;

use tempfile::TempDir;

pub mod client;

pub fn write(folder: &Path, path: &str, text: &str) {
    let file = folder.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// The notes of somebody else: a sailor, teacher and choir singer.
pub fn second_vault() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in SECOND_VAULT {
        write(folder.path(), path, text);
    }
    folder
}

const SECOND_VAULT: &[(&str, &str)] = &[
    (
        "Boat/Log of the Petrel.md",
        "# Log of the Petrel\n\n## 3 May\nLaunched at Gosport at 0640, wind south-west four. The bilge pump ran for ten minutes and then never again.\n\n## 17 May\nCrossed to Cherbourg in eleven hours and twenty minutes. Saw two porpoises off the Needles. Erik was sick twice and cheerful throughout.\n\n## 30 May\nTore the genoa on the spreader. Sailmaker in St Peter Port mended it for 140 pounds while we waited.\n\n## 8 June\nBack in Gosport. Engine hours: 412. Changed the impeller, the old one had lost three of its six vanes.\n",
    ),
    (
        "Boat/Maintenance.md",
        "---\ntags: [boat]\n---\n# Maintenance\n\n| job | last done | interval |\n|---|---|---|\n| antifouling, two coats of red | March 2024 | yearly |\n| gas locker test | June 2023 | two years |\n| life raft service | January 2022 | three years |\n| standing rigging | 2016 | ten years |\n\nThe spare shear pins are in the biscuit tin under the chart table.\n",
    ),
    (
        "School/Year 9 physics.md",
        "# Year 9 physics\n\nRoom 14, Tuesdays second period. Twenty-seven pupils, one of them allergic to latex, so no balloons.\n\n## Ideas that worked\n- Dropping a slinky from the gallery: nobody believes that the bottom hangs still.\n- Measuring the speed of light with a chocolate bar in the microwave; the class got 2.8 times ten to the eighth.\n\n## Ideas that did not\n- The potato battery. The potatoes were eaten.\n",
    ),
    (
        "School/Parents evening.md",
        "---\ndate: 2024-02-06\n---\nParents' evening. Mrs Oyelaran would like harder homework for Tunde. The Whitcombe twins are moving to Leeds at Easter. I promised the reading list to everyone by Friday.\n",
    ),
    (
        "Choir/Winter concert.md",
        "# Winter concert\n\nSt Jude's, 14 December at seven. We sing the Rutter, two carols in Welsh and the Fauré.\n\nConductor: Margarethe Lund. Tickets are twelve pounds, children free. Basses wear the grey tie and nobody hums before the entry.\n",
    ),
    (
        "Money/Pension.md",
        "# Pension\n\nCalled the scheme on 9 October. Service counted: 22 years and 4 months. If I stop at sixty the pension would be 14,300 a year, at sixty-three 17,050.\n\nReference for every letter: TP/88120/K.\n",
    ),
    (
        "People/Erik.md",
        "# Erik\n\nBirthday 2 November. Cannot stand coriander. His sister Ragnhild keeps bees near Tromsø and sends a jar each Christmas.\n\nOwes me a bilge pump.\n",
    ),
    (
        "Allemand/Stammtisch.md",
        "# Stammtisch\n\nJeden zweiten Donnerstag im Gasthaus zum Anker. Nächstes Mal bringt Frau Petersen ihre Dias von der Hallig Hooge mit.\n\nDer Beitrag für die Kasse beträgt acht Euro im Vierteljahr. Schlüssel für den Nebenraum hat der Wirt, Herr Claasen.\n",
    ),
    (
        "Cuisine/Soupe de poisson.md",
        "# Soupe de poisson\n\nRecette d'Yvonne, apprise à Saint-Malo en 2009.\n\n1. Faire revenir les têtes de grondin avec un fenouil et deux poireaux.\n2. Mouiller avec un litre et demi d'eau et un verre de muscadet.\n3. Cuire quarante minutes, mixer, passer au chinois.\n4. Ajouter le safran à la toute fin, sinon il perd son parfum.\n\nSe congèle très bien, trois mois au plus.\n",
    ),
    (
        "Cuisine/Marché.md",
        "Le poissonnier de Cherbourg ferme à midi et demi, le lundi toute la journée. Les praires étaient à onze euros le kilo. La fromagère met de côté un camembert si on téléphone la veille.\n",
    ),
    (
        "中文/搬到上海.md",
        "# 搬到上海\n\n公寓在徐汇区，六楼没有电梯，月租七千八百元。房东姓顾，喜欢下围棋。\n\n## 交通\n- 去学校坐地铁九号线，四站，大约二十五分钟。\n- 自行车被偷了一次，后来买了一辆旧的，一百五十元。\n",
    ),
    (
        "中文/医生.md",
        "牙医诊所在淮海路，周医生，电话预约。上次补了右下的一颗牙，花了六百二十元，半年以后要复查。\n",
    ),
    (
        "Ideas/Attic.md",
        "# Attic\n\nInsulate before the winter. Quote from Bramwell & Sons: 3,450 pounds for wood fibre, 200 millimetres. They need two days and want the water tank emptied first.\n",
    ),
];

/// Language, question, note, quotation.
pub const SECOND_QUESTIONS: &[(&str, &str, &str, &str)] = &[
    (
        "en",
        "How long did the crossing to Cherbourg take?",
        "Boat/Log of the Petrel.md",
        "eleven hours and twenty minutes",
    ),
    (
        "en",
        "Who mended the genoa and what did it cost?",
        "Boat/Log of the Petrel.md",
        "mended it for 140 pounds",
    ),
    ("en", "where are the spare shear pins", "Boat/Maintenance.md", "biscuit tin under the chart table"),
    ("en", "When was the life raft last serviced?", "Boat/Maintenance.md", "January 2022"),
    ("en", "Why can't I use balloons with year 9?", "School/Year 9 physics.md", "allergic to latex"),
    ("en", "What happened with the potato battery?", "School/Year 9 physics.md", "The potatoes were eaten"),
    ("en", "Who is moving to Leeds?", "School/Parents evening.md", "The Whitcombe twins are moving to Leeds"),
    (
        "en",
        "How much are tickets for the winter concert?",
        "Choir/Winter concert.md",
        "Tickets are twelve pounds",
    ),
    ("en", "What would my pension be if I stopped at sixty?", "Money/Pension.md", "14,300 a year"),
    ("en", "pension reference number for letters", "Money/Pension.md", "TP/88120/K"),
    ("en", "What does Erik not like to eat?", "People/Erik.md", "Cannot stand coriander"),
    ("en", "Where does Erik's sister keep her bees?", "People/Erik.md", "bees near Tromsø"),
    ("en", "What did Bramwell quote for insulating the attic?", "Ideas/Attic.md", "3,450 pounds"),
    (
        "en",
        "how many engine hours did the boat have in June",
        "Boat/Log of the Petrel.md",
        "Engine hours: 412",
    ),
    ("de", "Wer hat den Schlüssel für den Nebenraum?", "Allemand/Stammtisch.md", "der Wirt, Herr Claasen"),
    ("de", "Wie hoch ist der Beitrag für die Kasse?", "Allemand/Stammtisch.md", "acht Euro im Vierteljahr"),
    (
        "fr",
        "Quand faut-il ajouter le safran dans la soupe de poisson ?",
        "Cuisine/Soupe de poisson.md",
        "Ajouter le safran à la toute fin",
    ),
    (
        "fr",
        "Combien de temps peut-on congeler la soupe ?",
        "Cuisine/Soupe de poisson.md",
        "trois mois au plus",
    ),
    ("fr", "À quelle heure ferme le poissonnier de Cherbourg ?", "Cuisine/Marché.md", "ferme à midi et demi"),
    ("fr", "Quel était le prix des praires ?", "Cuisine/Marché.md", "onze euros le kilo"),
    ("zh", "上海公寓的月租是多少？", "中文/搬到上海.md", "月租七千八百元"),
    ("zh", "房东喜欢什么？", "中文/搬到上海.md", "喜欢下围棋"),
    ("zh", "去学校坐几号线地铁？", "中文/搬到上海.md", "地铁九号线"),
    ("zh", "补牙花了多少钱？", "中文/医生.md", "花了六百二十元"),
    ("zh", "牙医诊所在哪里？", "中文/医生.md", "牙医诊所在淮海路"),
];

/// Questions that no note of the sample vault answers.
pub const UNKNOWN: &[&str] = &[
    "kubernetes",
    "What did I write about the trombone?",
    "Ai-je des notes sur l'apiculture ?",
    "有没有关于滑雪的笔记？",
    "zzzzqqqq",
];
